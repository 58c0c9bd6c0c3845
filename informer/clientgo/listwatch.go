package clientgo

import (
	"context"
	"fmt"
	"io"
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
)

// listerWatcher is a ListerWatcher of ours over one of client-go's.
type listerWatcher struct {
	peer peer.ListerWatcherWithContext
	// example has the type that objects must have; nil does not say.
	example runtime.Object
}

func (lw listerWatcher) List(ctx context.Context, o informer.ListOptions, yield func(informer.Object) error) (informer.ListResult, error) {
	list, err := lw.peer.ListWithContext(ctx, metav1.ListOptions{
		ResourceVersion: o.ResourceVersion, ResourceVersionMatch: o.Match, Limit: o.Limit, Continue: o.Continue,
	})
	if err != nil {
		return informer.ListResult{}, err
	}
	m, err := meta.ListAccessor(list)
	if err != nil {
		return informer.ListResult{}, &informer.DecodeError{What: "list", Err: fmt.Errorf("a %T: %w", list, err)}
	}
	err = meta.EachListItemWithAlloc(list, func(item runtime.Object) error {
		obj, err := lw.object(item)
		if err != nil {
			return err
		}
		return yield(obj)
	})
	return informer.ListResult{ResourceVersion: m.GetResourceVersion(), Continue: m.GetContinue()}, err
}

func (lw listerWatcher) Watch(ctx context.Context, o informer.WatchOptions) (informer.Watch[informer.Object], error) {
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
	if err != nil {
		return nil, err
	}
	return stream{lw, w}, nil
}

// object checks the type of what came.
func (lw listerWatcher) object(item runtime.Object) (informer.Object, error) {
	obj, ok := item.(informer.Object)
	if !ok {
		return nil, &informer.DecodeError{What: "object", Err: fmt.Errorf("a %T has no metadata", item)}
	}
	if lw.example != nil && reflect.TypeOf(item) != reflect.TypeOf(lw.example) {
		return nil, &informer.DecodeError{What: "object " + informer.Key(obj), Err: fmt.Errorf("a %T, wanted is a %T", item, lw.example)}
	}
	if _, tree := lw.example.(*unstructured.Unstructured); tree {
		want := lw.example.GetObjectKind().GroupVersionKind()
		if got := obj.GetObjectKind().GroupVersionKind(); !want.Empty() && got != want {
			return nil, &informer.DecodeError{What: "object " + informer.Key(obj), Err: fmt.Errorf("a %s, wanted is a %s", got, want)}
		}
	}
	return obj, nil
}

// stream is a Watch of ours over one of client-go's.
type stream struct {
	lw   listerWatcher
	peer watch.Interface
}

func (s stream) Next(ctx context.Context) (ev informer.Event[informer.Object], err error) {
	select {
	case got, open := <-s.peer.ResultChan():
		if !open {
			if ctx.Err() != nil {
				return ev, context.Cause(ctx)
			}
			return ev, io.EOF
		}
		return s.event(got)
	case <-ctx.Done():
		return ev, context.Cause(ctx)
	}
}

func (s stream) event(got watch.Event) (ev informer.Event[informer.Object], err error) {
	ev.Type = informer.EventType(got.Type)
	switch got.Type {
	case watch.Error:
		return ev, apierrors.FromObject(got.Object)
	case watch.Bookmark:
		m, err := meta.Accessor(got.Object)
		if err != nil {
			return ev, &informer.DecodeError{What: "bookmark", Err: err}
		}
		ev.ResourceVersion = m.GetResourceVersion()
		ev.InitialEventsEnd = m.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"
		return ev, nil
	}
	ev.Object, err = s.lw.object(got.Object)
	if err == nil {
		ev.ResourceVersion = ev.Object.GetResourceVersion()
	}
	return ev, err
}

func (s stream) Close() error {
	s.peer.Stop()
	return nil
}
