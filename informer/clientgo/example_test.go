package clientgo_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clientgo "k8s.io/client-go/tools/cache"

	cache "github.com/flyball-dev/flyball/informer/clientgo" // The only line that changes.
)

// noStreams is a client that reports that it cannot stream lists.
type noStreams struct{}

func (noStreams) IsWatchListSemanticsUnSupported() bool { return true }

// onePod lists one pod, and never changes.
func onePod() cache.ListerWatcher {
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &corev1.PodList{
				Items: []corev1.Pod{{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}},
			}, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			return watch.NewFake(), nil
		},
	}, noStreams{})
}

var onAdd = cache.ResourceEventHandlerFuncs{AddFunc: func(obj any) { fmt.Println("add", obj.(*corev1.Pod).Name) }}

// runUntilSynced calls run, and stops it when synced is done.
func runUntilSynced(run func(context.Context), synced cache.DoneChecker) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() {
		defer close(done)
		run(ctx)
	}()
	cache.WaitFor(ctx, "the example", synced)
	cancel()
	<-done
}

func ExampleNewSharedIndexInformer() {
	inf := cache.NewSharedIndexInformer(onePod(), &corev1.Pod{}, 0,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	handler, err := inf.AddEventHandler(onAdd)
	if err != nil {
		fmt.Println(err)
	}
	runUntilSynced(inf.RunWithContext, handler.HasSyncedChecker())
	pods, err := inf.GetIndexer().ByIndex(cache.NamespaceIndex, "default")
	fmt.Println(len(pods), err)
	// Output:
	// add web
	// 1 <nil>
}

func ExampleNewSharedIndexInformerWithOptions() {
	inf := cache.NewSharedIndexInformerWithOptions(onePod(), &corev1.Pod{},
		cache.SharedIndexInformerOptions{ResyncPeriod: time.Hour})
	runUntilSynced(inf.RunWithContext, inf.HasSyncedChecker())
	fmt.Println(inf.GetStore().ListKeys())
	// Output: [default/web]
}

func ExampleNewSharedInformer() {
	inf := cache.NewSharedInformer(onePod(), &corev1.Pod{}, 0)
	runUntilSynced(inf.RunWithContext, inf.HasSyncedChecker())
	fmt.Println(inf.GetStore().ListKeys())
	// Output: [default/web]
}

func ExampleNewInformerWithOptions() {
	store, controller := cache.NewInformerWithOptions(
		cache.InformerOptions{ListerWatcher: onePod(), ObjectType: &corev1.Pod{}, Handler: onAdd},
	)
	runUntilSynced(controller.RunWithContext, controller.HasSyncedChecker())
	fmt.Println(store.ListKeys())
	// Output:
	// add web
	// [default/web]
}

func ExampleNewInformer() {
	store, controller := cache.NewInformer(onePod(), &corev1.Pod{}, 0, onAdd)
	runUntilSynced(controller.RunWithContext, controller.HasSyncedChecker())
	fmt.Println(store.ListKeys())
	// Output:
	// add web
	// [default/web]
}

func ExampleNewIndexerInformer() {
	indexer, controller := cache.NewIndexerInformer(onePod(), &corev1.Pod{}, 0, onAdd,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	runUntilSynced(controller.RunWithContext, controller.HasSyncedChecker())
	fmt.Println(indexer.ListIndexFuncValues(cache.NamespaceIndex))
	// Output:
	// add web
	// [default]
}

func ExampleNewStore() {
	store := cache.NewStore(func(obj any) (string, error) { return obj.(string)[:1], nil })
	if err := store.Add("apple"); err != nil {
		fmt.Println(err)
	}
	obj, exists, err := store.GetByKey("a")
	fmt.Println(obj, exists, err)
	// Output: apple true <nil>
}

func ExampleNewIndexer() {
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc,
		cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
	if err := indexer.Add(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"}}); err != nil {
		fmt.Println(err)
	}
	fmt.Println(indexer.IndexKeys(cache.NamespaceIndex, "default"))
	// Output: [default/web] <nil>
}

func ExampleNewGenericLister() {
	indexer := cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	lister := cache.NewGenericLister(indexer, corev1.Resource("pods"))
	_, err := lister.ByNamespace("default").Get("web")
	fmt.Println(err)
	objs, err := lister.List(labels.Everything())
	fmt.Println(len(objs), err)
	// Output:
	// pods "web" not found
	// 0 <nil>
}

func ExampleNewObjectName() {
	fmt.Println(cache.NewObjectName("default", "web"))
	// Output: default/web
}

// client returns a client that no example sends a request with.
func client() rest.Interface {
	c, err := rest.UnversionedRESTClientFor(
		&rest.Config{
			Host:          "http://127.0.0.1:1",
			ContentConfig: rest.ContentConfig{NegotiatedSerializer: scheme.Codecs.WithoutConversion()},
		},
	)
	if err != nil {
		panic(err)
	}
	return c
}

func ExampleNewListWatchFromClient() {
	lw := cache.NewListWatchFromClient(client(), "pods", "default", fields.Everything())
	inf := cache.NewSharedInformer(lw, &corev1.Pod{}, 0)
	fmt.Println(inf.HasSynced())
	// Output: false
}

func ExampleNewFilteredListWatchFromClient() {
	lw := cache.NewFilteredListWatchFromClient(client(), "pods", "default",
		func(o *metav1.ListOptions) { o.LabelSelector = "app=web" })
	inf := cache.NewSharedInformer(lw, &corev1.Pod{}, 0)
	fmt.Println(inf.HasSynced())
	// Output: false
}

// Names that this package does not have can be used from client-go's package: the interfaces are the same.
func Example_beside() {
	inf := clientgo.NewTypedSharedIndexInformer[*corev1.Pod](
		cache.NewSharedIndexInformer(onePod(), &corev1.Pod{}, 0, cache.Indexers{}),
	)
	handler, err := inf.AddTypedEventHandler(clientgo.TypedResourceEventHandlerFuncs[*corev1.Pod]{
		AddFunc: func(p *corev1.Pod) { fmt.Println("add", p.Name) },
	})
	if err != nil {
		fmt.Println(err)
	}
	runUntilSynced(inf.RunWithContext, handler.HasSyncedChecker())
	// Output: add web
}

func ExampleNewReflector() {
	store := cache.NewStore(cache.MetaNamespaceKeyFunc)
	reflector := cache.NewReflector(onePod(), &corev1.Pod{}, store, 0)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { reflector.RunWithContext(ctx) })
	for len(store.ListKeys()) == 0 {
		time.Sleep(time.Millisecond)
	}
	stop()
	running.Wait()
	fmt.Println(store.ListKeys())
	// Output: [default/web]
}
