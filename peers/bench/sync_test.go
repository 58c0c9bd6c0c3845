package bench

import (
	"context"
	"io"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/informer/listwatch"
)

// BenchmarkInitialSync is the way of 100,000 objects, which are decoded already, from a list through the cache, with
// an index by namespace and another, to a handler. An operation is all of them.
func BenchmarkInitialSync(b *testing.B) {
	list := &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}
	for i := range indexed {
		list.Items = append(list.Items, *indexedPod(i, 1))
	}
	group := func(p *corev1.Pod) []string { return []string{p.Labels["group"]} }
	b.Run("100,000 objects", func(b *testing.B) {
		b.Run("client-go", func(b *testing.B) {
			for b.Loop() {
				syncClientGo(b, list, group)
			}
		})
		b.Run("Flyball", func(b *testing.B) {
			for b.Loop() {
				syncFlyball(b, list, group)
			}
		})
	})
}

func syncFlyball(b *testing.B, list *corev1.PodList, group func(*corev1.Pod) []string) {
	inf := informer.NewSharedInformer(decoded{list},
		informer.Options[*corev1.Pod]{Indexes: map[string]informer.IndexFunc[*corev1.Pod]{
			"namespace": func(p *corev1.Pod) ([]string, error) { return []string{p.Namespace}, nil },
			"group":     func(p *corev1.Pod) ([]string, error) { return group(p), nil },
		}})
	all, heard := make(chan struct{}), 0
	h := informer.Handler[*corev1.Pod]{OnAdd: func(*corev1.Pod, bool) {
		if heard++; heard == len(list.Items) {
			close(all)
		}
	}}
	if _, err := inf.AddHandler(h, informer.HandlerOptions{MaxLag: -1}); err != nil {
		b.Fatal(err)
	}
	ctx, stop := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- inf.Run(ctx) }()
	<-all
	stop()
	if err := <-ended; err != nil {
		b.Fatal(err)
	}
}

// decoded is a ListerWatcher of objects that never change.
type decoded struct{ list *corev1.PodList }

func (d decoded) List(_ context.Context, _ listwatch.ListOptions,
	yield func(*corev1.Pod) error,
) (listwatch.ListResult, error) {
	for i := range d.list.Items {
		if err := yield(&d.list.Items[i]); err != nil {
			return listwatch.ListResult{}, err
		}
	}
	return listwatch.ListResult{ResourceVersion: d.list.ResourceVersion}, nil
}

func (d decoded) Watch(context.Context, listwatch.WatchOptions) (listwatch.Watch[*corev1.Pod], error) {
	return silence{}, nil
}

// silence is a watch in which nothing happens.
type silence struct{}

func (silence) Next(ctx context.Context) (listwatch.Event[*corev1.Pod], error) {
	<-ctx.Done()
	return listwatch.Event[*corev1.Pod]{}, io.EOF
}

func (silence) Close() error { return nil }

// decodedClientGo is decoded for client-go.
func decodedClientGo(list *corev1.PodList) *cache.ListWatch {
	return &cache.ListWatch{
		ListFunc: func(metav1.ListOptions) (runtime.Object, error) { return list, nil },
		WatchFunc: func(o metav1.ListOptions) (watch.Interface, error) {
			if o.SendInitialEvents != nil {
				return nil, apierrors.NewInvalid(schema.GroupKind{}, "", nil) // This server lists.
			}
			return watch.NewFake(), nil
		},
	}
}

func syncClientGo(b *testing.B, list *corev1.PodList, group func(*corev1.Pod) []string) {
	stop := make(chan struct{})
	inf := cache.NewSharedIndexInformer(decodedClientGo(list), &corev1.Pod{}, 0, cache.Indexers{
		cache.NamespaceIndex: cache.MetaNamespaceIndexFunc,
		"group":              func(obj any) ([]string, error) { return group(obj.(*corev1.Pod)), nil },
	})
	all, heard := make(chan struct{}), 0
	h := cache.ResourceEventHandlerDetailedFuncs{AddFunc: func(any, bool) {
		if heard++; heard == len(list.Items) {
			close(all)
		}
	}}
	if _, err := inf.AddEventHandler(h); err != nil {
		b.Fatal(err)
	}
	var run sync.WaitGroup
	run.Go(func() { inf.Run(stop) })
	<-all
	close(stop)
	run.Wait()
}
