package chapter06

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	apiwatch "k8s.io/apimachinery/pkg/watch"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/docs/book/internal/book"
	"github.com/flyball-dev/flyball/docs/book/internal/figure"
	"github.com/flyball-dev/flyball/informer/clientgo"
)

// prepare is how programs with client-go begin: a handler at the one end of the informer, a lister at the other.
func prepare(pods cache.SharedIndexInformer, add func(key string)) (corelisters.PodLister, error) {
	enqueue := func(obj any) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(obj); err == nil {
			add(key)
		}
	}
	_, err := pods.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, obj any) { enqueue(obj) },
		DeleteFunc: enqueue,
	})
	return corelisters.NewPodLister(pods.GetIndexer()), err
}

// pages is a client that cannot stream lists.
type pages struct{}

func (pages) IsWatchListSemanticsUnSupported() bool { return true }

// podIn returns a pod of the namespace shop.
func podIn(name, version string) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		Namespace: "shop", Name: name, ResourceVersion: version, Labels: map[string]string{"app": "web"},
	}}
}

// source lists web-1. What is added to the watch comes later.
func source(w *apiwatch.FakeWatcher) cache.ListerWatcher {
	return cache.ToListWatcherWithWatchListSemantics(&cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &corev1.PodList{
				ListMeta: metav1.ListMeta{ResourceVersion: "7"}, Items: []corev1.Pod{*podIn("web-1", "5")},
			}, nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (apiwatch.Interface, error) { return w, nil },
	}, pages{})
}

// tellShared runs a shared informer with a handler and a lister, and returns what they see.
func tellShared(t *testing.T, inform func(cache.ListerWatcher, runtime.Object, time.Duration,
	cache.Indexers) cache.SharedIndexInformer,
) string {
	t.Helper()
	d := &diary{}
	synctest.Test(t, func(t *testing.T) {
		w := apiwatch.NewFakeWithOptions(apiwatch.FakeOptions{ChannelSize: 1})
		pods := inform(source(w), &corev1.Pod{}, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		lister, err := prepare(pods, func(key string) { d.write("  the handler adds the key %s", key) })
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		var running sync.WaitGroup
		d.write("the informer runs; the server has web-1")
		running.Go(func() { pods.RunWithContext(ctx) })
		cache.WaitForCacheSync(ctx.Done(), pods.HasSynced)
		synctest.Wait()
		d.write("web-2 is created")
		w.Add(podIn("web-2", "8"))
		synctest.Wait()
		found, err := lister.Pods("shop").List(labels.SelectorFromSet(labels.Set{"app": "web"}))
		if err != nil {
			t.Error(err)
		}
		got, err := lister.Pods("shop").Get("web-2")
		if err != nil {
			t.Error(err)
		}
		cached, _, err := pods.GetIndexer().GetByKey("shop/web-2")
		if err != nil {
			t.Error(err)
		}
		d.write("  the lister finds %d pods with app=web", len(found))
		d.write("  its Get of web-2 is the pointer in the indexer: %v", cached == any(got))
		_, err = lister.Pods("shop").Get("web-3")
		d.write("  its Get of web-3 says: %v", err)
		cancel()
		running.Wait()
	})
	return d.b.String()
}

// TestChapter06Shared runs client-go's informer and ours under client-go's names, and draws client-go's.
func TestChapter06Shared(t *testing.T) {
	theirs, ours := tellShared(t, cache.NewSharedIndexInformer), tellShared(t, clientgo.NewSharedIndexInformer)
	if theirs != ours {
		t.Errorf("client-go's informer does\n%s, ours does\n%s", theirs, ours)
	}
	book.Trace(t, page, theirs)
	book.Figure(t, "06-shared", drawShared(t))
}

// drawShared draws the parts of a sharedIndexInformer under the names that its fields and types have.
func drawShared(t *testing.T) *figure.Figure {
	t.Helper()
	of := reflect.TypeOf(cache.NewSharedIndexInformer(source(nil), &corev1.Pod{}, 0, cache.Indexers{})).Elem()
	field := func(name string) string {
		f, has := of.FieldByName(name)
		if !has {
			t.Errorf("%v has no field %s", of, name)
			return ""
		}
		return name + " " + strings.Replace(f.Type.String(), "cache.", "", 1)
	}
	f := figure.New("What a sharedIndexInformer consists of",
		"A reflector follows the server and fills a DeltaFIFO. Batches from there go into the indexer and to the "+
			"processor, which has a listener for each handler. A lister reads from the indexer.", figure.Width, 300)
	f.Frame(14, 14, 548, 178, fmt.Sprintf("%s: one for each resource of a process", of.Name()))
	point := func(x, y float64) figure.Point { return figure.Point{X: x, Y: y} }
	f.Box(30, 60, 120, 62, figure.Plain, "Reflector", "lists, watches", "listerWatcher")
	f.Arrow(figure.Plain, point(154, 91), point(206, 91))
	f.Middle(180, 82, "deltas", "small", figure.Muted)
	f.Box(210, 60, 130, 62, figure.Plain, "DeltaFIFO", "orders the deltas", "or RealFIFO")
	f.Middle(185, 144, field("controller"), "code", figure.Muted)
	f.Arrow(figure.Plain, point(344, 80), point(396, 70))
	f.Arrow(figure.Plain, point(344, 102), point(396, 142))
	f.Box(400, 44, 152, 54, figure.Lit, "Indexer", field("indexer"))
	f.Box(400, 120, 152, 54, figure.Plain, "processor", strings.TrimPrefix(field("processor"), "processor "))
	f.Box(590, 44, 116, 54, figure.Lit, "Lister", "Get and List")
	f.Arrow(figure.Lit, point(556, 71), point(586, 71))
	for i, name := range []string{"handler", "handler", "handler"} {
		x := 330 + 128*float64(i)
		f.Arrow(figure.A, point(476, 178), point(x+56, 226))
		f.Box(x, 230, 112, 46, figure.A, name, "adds a key")
	}
	return f
}
