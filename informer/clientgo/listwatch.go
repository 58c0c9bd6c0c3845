package clientgo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"reflect"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	peer "k8s.io/client-go/tools/cache"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/listwatch"
	"github.com/flyball-dev/flyball/informer/objects"
	"github.com/flyball-dev/flyball/internal/versions"
)

// listerWatcher adapts client-go's ListerWatcher to the one of package listwatch.
type listerWatcher struct {
	peer peer.ListerWatcherWithContext
	// example has the type that objects from a watch must have; nil means any. Objects from lists are not checked, as
	// in client-go.
	example runtime.Object
}

func (lw listerWatcher) List(ctx context.Context, o listwatch.ListOptions,
	yield func(held) error,
) (listwatch.ListResult, error) {
	list, err := lw.fetch(ctx, metav1.ListOptions{
		ResourceVersion: o.ResourceVersion, ResourceVersionMatch: o.Match, Limit: o.Limit, Continue: o.Continue,
	})
	if err != nil {
		return listwatch.ListResult{}, err
	}
	m, err := meta.ListAccessor(list)
	if err != nil {
		return listwatch.ListResult{}, &objects.DecodeError{What: "list", Err: fmt.Errorf("a %T: %w", list, err)}
	}
	// The call copies each item. A pointer into the list would keep all items of the list alive.
	err = meta.EachListItemWithAlloc(list, func(item runtime.Object) error {
		obj, err := withMetadata(item)
		if err != nil {
			return err
		}
		return yield(held{obj, fromList})
	})
	return listwatch.ListResult{ResourceVersion: m.GetResourceVersion(), Continue: m.GetContinue()}, err
}

// fetch calls the user's list function. The function may ignore ctx, so fetch stops waiting for it when ctx is done.
func (lw listerWatcher) fetch(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
	type answer struct {
		list runtime.Object
		err  error
	}
	answered := make(chan answer, 1) // Sent to once, by the goroutine. Buffered in case ctx is done first.
	go func() {
		list, err := lw.peer.ListWithContext(ctx, o)
		answered <- answer{list, err}
	}()
	select {
	case a := <-answered:
		return a.list, a.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

func (lw listerWatcher) Watch(ctx context.Context, o listwatch.WatchOptions) (listwatch.Watch[held], error) {
	options := metav1.ListOptions{ResourceVersion: o.ResourceVersion, AllowWatchBookmarks: true}
	if o.Timeout > 0 {
		seconds := int64((o.Timeout + time.Second - 1) / time.Second)
		options.TimeoutSeconds = &seconds
	}
	if o.SendInitialEvents {
		options.SendInitialEvents = &o.SendInitialEvents
		options.ResourceVersionMatch = metav1.ResourceVersionMatchNotOlderThan
	}
	w, err := lw.peer.WatchWithContext(ctx, options)
	switch {
	case err == nil:
		return &stream{lw: lw, peer: w, position: o.ResourceVersion, listing: o.SendInitialEvents}, nil
	case o.SendInitialEvents && ofNoServer(err):
		// This is a fake client that cannot stream lists, but does not report that. client-go v0.37.2 also lists then.
		return nil, fmt.Errorf("%w: %w", io.EOF, err)
	default:
		return nil, err
	}
}

// ofNoServer reports whether err came neither from a server nor from the connection to one.
func ofNoServer(err error) bool {
	var (
		status     apierrors.APIStatus
		connection net.Error
	)
	return !errors.As(err, &status) && !errors.As(err, &connection) && !errors.Is(err, context.Canceled)
}

func withMetadata(item runtime.Object) (informer.Object, error) {
	obj, ok := item.(informer.Object)
	if !ok {
		return nil, &objects.DecodeError{What: "object", Err: fmt.Errorf("a %T has no metadata", item)}
	}
	return obj, nil
}

// checked is withMetadata for objects of a watch: it also checks the type.
func (lw listerWatcher) checked(item runtime.Object) (informer.Object, error) {
	obj, err := withMetadata(item)
	if err != nil || lw.example == nil {
		return obj, err
	}
	if reflect.TypeOf(item) != reflect.TypeOf(lw.example) {
		return nil, &objects.DecodeError{
			What: "object " + informer.Key(obj),
			Err:  fmt.Errorf("got a %T, expected a %T", item, lw.example),
		}
	}
	if _, tree := lw.example.(*unstructured.Unstructured); tree {
		want := lw.example.GetObjectKind().GroupVersionKind()
		if got := obj.GetObjectKind().GroupVersionKind(); !want.Empty() && got != want {
			return nil, &objects.DecodeError{
				What: "object " + informer.Key(obj),
				Err:  fmt.Errorf("got a %s, expected a %s", got, want),
			}
		}
	}
	return obj, nil
}

// stream adapts client-go's watch to the one of package listwatch.
type stream struct {
	lw   listerWatcher
	peer watch.Interface
	// listing is true while the initial events of a streamed list arrive. They come in any order.
	listing bool
	// position is the highest resource version so far.
	position string
	// outOfOrder is true if an event was older than position.
	outOfOrder bool
}

func (s *stream) Next(ctx context.Context) (ev listwatch.Event[held], err error) {
	select {
	case got, open := <-s.peer.ResultChan():
		if open {
			return s.event(got)
		}
		if ctx.Err() != nil {
			return ev, context.Cause(ctx)
		}
		if s.outOfOrder {
			return ev, apierrors.NewResourceExpired("watch events were out of order")
		}
		return ev, io.EOF
	case <-ctx.Done():
		return ev, context.Cause(ctx)
	}
}

func (s *stream) event(got watch.Event) (ev listwatch.Event[held], err error) {
	ev.Type = listwatch.EventType(got.Type)
	switch got.Type {
	case watch.Error:
		return ev, apierrors.FromObject(got.Object)
	case watch.Bookmark:
		m, err := meta.Accessor(got.Object)
		if err != nil {
			return ev, &objects.DecodeError{What: "bookmark", Err: err}
		}
		ev.ResourceVersion = m.GetResourceVersion()
		ev.InitialEventsEnd = m.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
		if ev.InitialEventsEnd {
			s.listing, s.position = false, ev.ResourceVersion
		}
		return ev, nil
	}
	obj, err := s.lw.checked(got.Object)
	if err != nil {
		return ev, err
	}
	if s.listing {
		ev.Object, ev.ResourceVersion = held{obj, fromList}, obj.GetResourceVersion()
		return ev, nil
	}
	from := fromWatch
	if got.Type == watch.Added {
		from = fromAdded
	}
	ev.Object, ev.ResourceVersion = held{obj, from}, s.advance(obj.GetResourceVersion())
	return ev, nil
}

// advance returns the resource version that an event moves the watch to, or "" if the event is older than position.
// Servers do not send such events, but fake clients do, and client-go accepts them. If a server did send one, its
// history has gone back, so Next reports an expired watch at its end, which leads to a list.
func (s *stream) advance(version string) string {
	if versions.Earlier(version, s.position) {
		s.outOfOrder = true
		return ""
	}
	if version != "" {
		s.position = version
	}
	return version
}

func (s *stream) Close() error {
	s.peer.Stop()
	return nil
}
