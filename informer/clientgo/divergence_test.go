package clientgo

import (
	"context"
	"errors"
	"io"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	corelisters "k8s.io/client-go/listers/core/v1"
	peer "k8s.io/client-go/tools/cache"
	fcache "k8s.io/client-go/tools/cache/testing"
	"k8s.io/klog/v2"
)

// The tests of this file do one thing to both sides, and pin down how differently they answer: those are the differences that
// the package comment lists.

// differ runs f on both sides and compares what it returns.
func differ(t *testing.T, f func(t *testing.T, s side) []string, flyball, clientgo []string) {
	t.Helper()
	for name, want := range map[string][]string{"flyball": flyball, "clientgo": clientgo} {
		synctest.Test(t, func(t *testing.T) { equal(t, name, f(t, sides[name]), want) })
	}
}

// TestDivergenceRelist of what did not change.
func TestDivergenceRelist(t *testing.T) {
	differ(t, func(t *testing.T, s side) []string {
		source := fcache.NewFakeControllerSource()
		defer source.Shutdown()
		source.Add(pod("a", "one", ""))
		source.Add(pod("a", "two", ""))
		r := &recorder{}
		inf := s.newInformer(source, &corev1.Pod{}, 0, Indexers{})
		_, err := inf.AddEventHandler(r)
		must(t, err)
		defer running(t, inf)()
		r.take()
		source.DeleteDropWatch(pod("a", "two", ""))
		source.ResetWatch()
		time.Sleep(5 * time.Minute)
		return r.take()
	}, []string{"tombstone a/two two"}, []string{"tombstone a/two two", "update one 1->1"})
}

// TestDivergenceUnknownDeleted: a deletion of what the cache never held, and a state from the past.
func TestDivergenceUnknownDeleted(t *testing.T) {
	differ(t, func(t *testing.T, s side) []string {
		w := watch.NewFakeWithChanSize(10, false)
		lw := &peer.ListWatch{
			ListFunc: func(metav1.ListOptions) (runtime.Object, error) {
				return &corev1.PodList{ListMeta: metav1.ListMeta{ResourceVersion: "5"}, Items: []corev1.Pod{*pod("a", "one", "5")}}, nil
			},
			WatchFunc: func(o metav1.ListOptions) (watch.Interface, error) {
				if o.SendInitialEvents != nil {
					return nil, apierrors.NewInvalid(corev1.SchemeGroupVersion.WithKind("Pod").GroupKind(), "", nil)
				}
				return w, nil
			},
		}
		r := &recorder{}
		inf := s.newInformer(lw, &corev1.Pod{}, 0, Indexers{})
		_, err := inf.AddEventHandler(r)
		must(t, err)
		stop := running(t, inf)
		r.take()
		w.Delete(pod("a", "two", "6"))
		w.Modify(pod("a", "one", "4"))
		lines := r.take()
		stop()
		return lines
	}, []string{"update one 5->4"}, []string{"delete two", "update one 5->4"})
}

// TestDivergenceStoreVersion: the highest version, not the last.
func TestDivergenceStoreVersion(t *testing.T) {
	differ(t, func(t *testing.T, s side) []string {
		x := s.newIndexer(MetaNamespaceKeyFunc, Indexers{})
		must(t, x.Add(pod("a", "one", "9")))
		must(t, x.Add(pod("a", "two", "7")))
		return []string{x.LastStoreSyncResourceVersion()}
	}, []string{"9"}, []string{"7"})
}

// TestDivergenceIndexPanics: an index function that fails.
func TestDivergenceIndexPanics(t *testing.T) {
	differ(t, func(t *testing.T, s side) (lines []string) {
		x := s.newIndexer(MetaNamespaceKeyFunc, Indexers{"bad": func(any) ([]string, error) { return nil, errors.New("bad") }})
		defer func() {
			if recover() != nil {
				lines = []string{"panic"}
			}
		}()
		must(t, x.Add(pod("a", "one", "")))
		return names(x.List())
	}, []string{"one"}, []string{"panic"})
}

// TestDivergenceTransformFails once: the object comes later, or never.
func TestDivergenceTransformFails(t *testing.T) {
	differ(t, func(t *testing.T, s side) []string {
		source := fcache.NewFakeControllerSource()
		defer source.Shutdown()
		r := &recorder{}
		inf := s.newInformer(source, &corev1.Pod{}, 0, Indexers{})
		failed := false
		must(t, inf.SetTransform(func(obj any) (any, error) {
			if !failed {
				failed = true
				return nil, errors.New("once")
			}
			return obj, nil
		}))
		_, err := inf.AddEventHandler(r)
		must(t, err)
		defer running(t, inf)()
		r.take()
		source.Add(pod("a", "one", ""))
		time.Sleep(5 * time.Minute)
		return r.take()
	}, []string{"add one false"}, nil)
}

// TestEveryUpdateIsDelivered, however slow the handler: client-go promises it.
func TestEveryUpdateIsDelivered(t *testing.T) {
	both(t, func(t *testing.T, s side) {
		source := fcache.NewFakeControllerSource()
		defer source.Shutdown()
		gate := make(chan struct{})
		var updates int
		inf := s.newInformer(source, &corev1.Pod{}, 0, Indexers{})
		_, err := inf.AddEventHandler(ResourceEventHandlerFuncs{
			AddFunc:    func(any) { <-gate },
			UpdateFunc: func(any, any) { updates++ },
		})
		must(t, err)
		defer running(t, inf)()
		synctest.Wait()
		source.Add(pod("a", "one", ""))
		for range 500 {
			source.Modify(pod("a", "one", ""))
			synctest.Wait()
		}
		close(gate)
		synctest.Wait()
		if updates != 500 {
			t.Errorf("%d updates", updates)
		}
	})
}

// TestGeneratedFactoryAndLister: a generated factory runs our informer, its generated lister reads our cache.
func TestGeneratedFactoryAndLister(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
		client := fake.NewClientset(pod("a", "one", ""))
		factory := informers.NewSharedInformerFactory(client, 0)
		inf := factory.InformerFor(&corev1.Pod{}, func(client kubernetes.Interface, resync time.Duration) SharedIndexInformer {
			pods := client.CoreV1().Pods("")
			lw := &ListWatch{
				ListWithContextFunc:  func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) { return pods.List(ctx, o) },
				WatchFuncWithContext: pods.Watch,
			}
			return NewSharedIndexInformer(lw, &corev1.Pod{}, resync, Indexers{NamespaceIndex: MetaNamespaceIndexFunc})
		})
		r := &recorder{}
		_, err := inf.AddEventHandler(FilteringResourceEventHandler{
			FilterFunc: func(obj any) bool { return obj.(*corev1.Pod).Namespace == "a" }, Handler: r,
		})
		must(t, err)
		factory.StartWithContext(ctx)
		factory.WaitForCacheSync(ctx.Done())
		lister := corelisters.NewPodLister(inf.GetIndexer())
		if p, err := lister.Pods("a").Get("one"); err != nil || p.Name != "one" {
			t.Errorf("lister: %v %v", p, err)
		}
		if _, err := lister.Pods("a").Get("two"); !apierrors.IsNotFound(err) {
			t.Errorf("lister of nothing: %v", err)
		}
		for _, p := range []*corev1.Pod{pod("a", "two", ""), pod("b", "three", "")} {
			if _, err := client.CoreV1().Pods(p.Namespace).Create(ctx, p, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		equal(t, "told", r.take(), []string{"add one true", "add two false"})
		all, err := lister.List(labels.Everything())
		must(t, err)
		if len(all) != 3 {
			t.Errorf("%d pods", len(all))
		}
		cancel()
		factory.Shutdown()
	})
}

// TestStreamEnds: a channel that is closed is a watch that the server ended.
func TestStreamEnds(t *testing.T) {
	w := watch.NewFake()
	s := stream{lw: listerWatcher{example: &corev1.Pod{}}, peer: w}
	var wg sync.WaitGroup
	wg.Go(func() {
		w.Add(&corev1.Service{})
		w.Stop()
	})
	if _, err := s.Next(t.Context()); err == nil {
		t.Error("an object of another type")
	}
	if _, err := s.Next(t.Context()); err != io.EOF {
		t.Errorf("closed: %v", err)
	}
	wg.Wait()
}
