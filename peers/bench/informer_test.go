package bench

import (
	"context"
	"io"
	"strconv"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/listwatch"
)

// objectCount is how many objects the events of the informer benchmarks go round.
const objectCount = 1000

// configMap is the n-th state in the history: object n mod objectCount. Both sides are given the same, built
// when it is asked for, so that what is measured is the way from there to the handlers.
func configMap(n int) *corev1.ConfigMap {
	i := n % objectCount
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: "namespace-" + strconv.Itoa(i%10), Name: "name-" + strconv.Itoa(i),
		UID: "uid", ResourceVersion: strconv.Itoa(n + 1),
	}}
}

// tally waits until each of several handlers has received n updates.
type tally struct{ wg sync.WaitGroup }

// handler returns what one handler calls for each update.
func (t *tally) handler(n int) func() {
	t.wg.Add(1)
	heard := 0
	return func() {
		if heard++; heard == n {
			t.wg.Done()
		}
	}
}

// BenchmarkEventToHandler is the way of a watch event through the cache, with an index by namespace, to the
// handlers. An operation is one event, which all of them receive. The transport is left out on both sides.
func BenchmarkEventToHandler(b *testing.B) {
	for _, to := range []struct {
		name     string
		handlers int
	}{{"to one handler", 1}, {"to ten handlers", 10}} {
		b.Run(to.name, func(b *testing.B) {
			b.Run("client-go", func(b *testing.B) { eventsClientGo(b, to.handlers) })
			b.Run("Flyball", func(b *testing.B) { eventsFlyball(b, to.handlers) })
		})
	}
}

func eventsFlyball(b *testing.B, handlers int) {
	b.ReportAllocs()
	source := &history{events: b.N, open: make(chan struct{})}
	inf := informer.NewSharedInformer(source, informer.Options[*corev1.ConfigMap]{
		Indexes: map[string]informer.IndexFunc[*corev1.ConfigMap]{
			"namespace": func(c *corev1.ConfigMap) ([]string, error) { return []string{c.Namespace}, nil },
		},
	})
	var all tally
	for range handlers {
		heard := all.handler(b.N)
		// Never merged: client-go delivers every update, so ours must too.
		h := informer.Handler[*corev1.ConfigMap]{OnUpdate: func(_, _ *corev1.ConfigMap) { heard() }}
		if _, err := inf.AddHandler(h, informer.HandlerOptions{MaxLag: -1}); err != nil {
			b.Fatal(err)
		}
	}
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- inf.Run(ctx) }()
	if err := inf.WaitForSync(ctx); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	close(source.open)
	all.wg.Wait()
	b.StopTimer()
	stop()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
}

// history is a ListerWatcher of objectCount objects and then a number of updates.
type history struct {
	events int
	open   chan struct{} // closed by the benchmark when the updates may flow
}

func (h *history) List(_ context.Context, _ listwatch.ListOptions,
	yield func(*corev1.ConfigMap) error,
) (listwatch.ListResult, error) {
	for i := range objectCount {
		if err := yield(configMap(i)); err != nil {
			return listwatch.ListResult{}, err
		}
	}
	return listwatch.ListResult{ResourceVersion: strconv.Itoa(objectCount)}, nil
}

func (h *history) Watch(_ context.Context, o listwatch.WatchOptions) (listwatch.Watch[*corev1.ConfigMap], error) {
	w := &stream{history: h, at: objectCount}
	if o.SendInitialEvents {
		w.at = 0
	}
	return w, nil
}

// stream is a watch: of the objects first, if it begins at 0.
type stream struct {
	*history
	at     int
	marked bool
}

func (s *stream) Next(ctx context.Context) (listwatch.Event[*corev1.ConfigMap], error) {
	switch {
	case s.at < objectCount:
		s.at++
		c := configMap(s.at - 1)
		return listwatch.Event[*corev1.ConfigMap]{Type: listwatch.Added, Object: c, ResourceVersion: c.ResourceVersion},
			nil
	case s.at == objectCount && !s.marked:
		s.marked = true
		return listwatch.Event[*corev1.ConfigMap]{
			Type: listwatch.Bookmark, ResourceVersion: strconv.Itoa(objectCount), InitialEventsEnd: true,
		}, nil
	case s.at == objectCount:
		select {
		case <-s.open:
		case <-ctx.Done():
			return listwatch.Event[*corev1.ConfigMap]{}, ctx.Err()
		}
	case s.at == objectCount+s.events:
		<-ctx.Done()
		return listwatch.Event[*corev1.ConfigMap]{}, io.EOF
	}
	s.at++
	c := configMap(s.at - 1)
	return listwatch.Event[*corev1.ConfigMap]{Type: listwatch.Modified, Object: c, ResourceVersion: c.ResourceVersion},
		nil
}

func (s *stream) Close() error { return nil }

func eventsClientGo(b *testing.B, handlers int) {
	b.ReportAllocs()
	open, stop := make(chan struct{}), make(chan struct{})
	source := &cache.ListWatch{
		ListFunc: func(metav1.ListOptions) (runtime.Object, error) {
			list := &corev1.ConfigMapList{ListMeta: metav1.ListMeta{ResourceVersion: strconv.Itoa(objectCount)}}
			for i := range objectCount {
				list.Items = append(list.Items, *configMap(i))
			}
			return list, nil
		},
		WatchFunc: func(o metav1.ListOptions) (watch.Interface, error) {
			return watchClientGo(o, b.N, open, stop), nil
		},
	}
	inf := cache.NewSharedIndexInformer(source, &corev1.ConfigMap{}, 0,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	var all tally
	for range handlers {
		heard := all.handler(b.N)
		if _, err := inf.AddEventHandler(
			cache.ResourceEventHandlerFuncs{UpdateFunc: func(_, _ any) { heard() }},
		); err != nil {
			b.Fatal(err)
		}
	}
	var run sync.WaitGroup
	run.Go(func() { inf.Run(stop) })
	for !inf.HasSynced() {
		time.Sleep(time.Millisecond)
	}
	b.ResetTimer()
	close(open)
	all.wg.Wait()
	b.StopTimer()
	close(stop)
	run.Wait()
}

// watchClientGo sends through an unbuffered channel from a goroutine, as client-go's own stream watcher does.
func watchClientGo(o metav1.ListOptions, events int, open, stop <-chan struct{}) watch.Interface {
	out := make(chan watch.Event)
	send := func(e watch.Event) bool {
		select {
		case out <- e:
			return true
		case <-stop:
			return false
		}
	}
	go func() {
		defer close(out)
		if o.SendInitialEvents != nil && *o.SendInitialEvents {
			for i := range objectCount {
				send(watch.Event{Type: watch.Added, Object: configMap(i)})
			}
			mark := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
				ResourceVersion: strconv.Itoa(objectCount),
				Annotations:     map[string]string{metav1.InitialEventsAnnotationKey: "true"},
			}}
			send(watch.Event{Type: watch.Bookmark, Object: mark})
		}
		select {
		case <-open:
		case <-stop:
			return
		}
		for i := range events {
			if !send(watch.Event{Type: watch.Modified, Object: configMap(objectCount + i)}) {
				return
			}
		}
		<-stop
	}()
	return watch.NewProxyWatcher(out)
}
