package informer

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
)

// The contract of cache.SharedIndexInformer but for its handlers. Source: k8s.io/client-go/tools/cache v0.37.2,
// shared_informer.go and reflector.go.

func TestInformerLifecycle(t *testing.T) {
	eachWay(t, func(t *testing.T, s side, streams bool) {
		src := newSource(streams, "one")
		inf := s.newInformer(src, &corev1.Pod{}, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		c := inf.GetController()
		if inf.HasSynced() || cache.IsDone(inf.HasSyncedChecker()) || inf.IsStopped() || c.HasSynced() ||
			cache.IsDone(c.HasSyncedChecker()) {
			t.Error("synced or stopped before it runs")
		}
		if v := inf.LastSyncResourceVersion() + c.LastSyncResourceVersion(); v != "" {
			t.Errorf("version %q before it runs", v)
		}
		stop := running(t, inf)
		synctest.Wait()
		if !inf.HasSynced() || !cache.IsDone(inf.HasSyncedChecker()) || !c.HasSynced() ||
			!cache.IsDone(c.HasSyncedChecker()) {
			t.Error("not synced")
		}
		if name := inf.HasSyncedChecker().Name(); name != "SharedIndexInformer *v1.Pod" {
			t.Errorf("name %q", name)
		}
		src.put("two")
		synctest.Wait()
		equal(t, "store", names(inf.GetStore().List()), []string{"one", "two"})
		objs, err := inf.GetIndexer().ByIndex(cache.NamespaceIndex, "a")
		must(t, err)
		equal(t, "index", names(objs), []string{"one", "two"})
		if inf.LastSyncResourceVersion() != "3" || c.LastSyncResourceVersion() != "3" ||
			inf.GetStore().LastStoreSyncResourceVersion() != "3" {
			t.Errorf("versions %s, %s, %s", inf.LastSyncResourceVersion(), c.LastSyncResourceVersion(),
				inf.GetStore().LastStoreSyncResourceVersion())
		}
		src.bookmark()
		synctest.Wait()
		if inf.LastSyncResourceVersion() != "4" || inf.GetStore().LastStoreSyncResourceVersion() != "4" {
			t.Errorf("versions after a bookmark: %s, %s", inf.LastSyncResourceVersion(),
				inf.GetStore().LastStoreSyncResourceVersion())
		}
		stop()
		if !inf.IsStopped() || !inf.HasSynced() {
			t.Error("not stopped, or not synced any more")
		}
		equal(t, "store of a stopped informer", names(inf.GetStore().List()), []string{"one", "two"})
	})
}

// TestInformerRunsOnce: the second run warns and returns, and the controller's runs are of no effect.
func TestInformerRunsOnce(t *testing.T) {
	both(t, func(t *testing.T, s side) {
		inf := s.newInformer(newSource(false, "one"), &corev1.Pod{}, 0, nil)
		never := make(chan struct{})
		inf.GetController().Run(never)
		inf.GetController().RunWithContext(t.Context())
		if inf.HasSynced() {
			t.Fatal("the controller ran it")
		}
		stop := make(chan struct{})
		var wg sync.WaitGroup
		wg.Go(func() { inf.Run(stop) })
		synctest.Wait()
		inf.Run(never)
		inf.RunWithContext(klog.NewContext(t.Context(), klog.Logger{}))
		if !inf.HasSynced() || inf.IsStopped() {
			t.Error("the first run is not left alone")
		}
		close(stop)
		wg.Wait()
		inf.Run(never)
		if !inf.IsStopped() {
			t.Error("not stopped")
		}
	})
}

// TestInformerRequests: the requests at the start, after a watch that ended without an error, and after a gap.
func TestInformerRequests(t *testing.T) {
	eachWay(t, func(t *testing.T, s side, streams bool) {
		src := newSource(streams, "one")
		defer running(t, s.newInformer(src, &corev1.Pod{}, 0, nil))()
		asked := func(what string, want ...string) {
			t.Helper()
			synctest.Wait()
			equal(t, what, src.asked(), want)
		}
		first, again := []string{`list "0"`, `watch "2"`}, []string{`watch "2"`, `list "2"`, `watch "3"`}
		if streams {
			first, again = []string{`stream ""`}, []string{`watch "2"`, `stream "2"`}
		}
		asked("first", first...)
		src.cutInTime()
		asked("after a watch that timed out", `watch "2"`)
		time.Sleep(2 * time.Second)
		src.gap(func() { src.putLocked("one") })
		time.Sleep(2 * time.Minute)
		if s.name == flyball.name {
			again = slices.Insert(again, 0, `list ""`) // See TestDivergenceEarlyEnd.
		}
		asked("after a gap", again...)
	})
}

// TestInformerStreamsNot: a client that does not stream lists and does not say so is listed.
func TestInformerStreamsNot(t *testing.T) {
	both(t, func(t *testing.T, s side) {
		src := newSource(false, "one")
		lw := &cache.ListWatch{ListFunc: src.List, WatchFunc: func(o metav1.ListOptions) (watch.Interface, error) {
			if o.SendInitialEvents != nil {
				return nil, errors.New("what is this?")
			}
			return src.Watch(o)
		}}
		inf := s.newInformer(lw, &corev1.Pod{}, 0, nil)
		defer running(t, inf)()
		synctest.Wait()
		equal(t, "store", inf.GetStore().ListKeys(), []string{"a/one"})
	})
}

func TestInformerAddIndexers(t *testing.T) {
	both(t, func(t *testing.T, s side) {
		src := newSource(false)
		src.put("one", "red")
		inf := s.newInformer(src, &corev1.Pod{}, 0, cache.Indexers{})
		must(t, inf.AddIndexers(cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc}))
		stop := running(t, inf)
		synctest.Wait()
		must(t, inf.AddIndexers(cache.Indexers{"label": byLabel}))
		equal(t, "values", inf.GetIndexer().ListIndexFuncValues("label"), []string{"red"})
		src.put("one", "blue")
		synctest.Wait()
		equal(t, "values after an update", inf.GetIndexer().ListIndexFuncValues("label"), []string{"blue"})
		if inf.AddIndexers(cache.Indexers{"label": byLabel}) == nil {
			t.Error("a name was taken twice")
		}
		stop()
		if inf.AddIndexers(cache.Indexers{"late": byLabel}) == nil {
			t.Error("added after the end")
		}
	})
}

func TestInformerSettersAfterTheStart(t *testing.T) {
	both(t, func(t *testing.T, s side) {
		inf := s.newInformer(newSource(false), &corev1.Pod{}, 0, nil)
		defer running(t, inf)()
		synctest.Wait()
		for what, err := range map[string]error{
			"SetTransform":         inf.SetTransform(func(o any) (any, error) { return o, nil }),
			"SetWatchErrorHandler": inf.SetWatchErrorHandler(func(*cache.Reflector, error) {}),
			"SetWatchErrorHandlerWithContext": inf.SetWatchErrorHandlerWithContext(
				func(context.Context, *cache.Reflector, error) {}),
		} {
			if err == nil || err.Error() != "informer has already started" {
				t.Errorf("%s: %v", what, err)
			}
		}
	})
}

// TestInformerTransform: once before anybody sees the object, from lists and from watches, for handlers, store and
// tombstones.
func TestInformerTransform(t *testing.T) {
	eachWay(t, func(t *testing.T, s side, streams bool) {
		src := newSource(streams, "one", "two")
		inf := s.newInformer(src, &corev1.Pod{}, 0, nil)
		must(t, inf.SetTransform(func(obj any) (any, error) {
			p := obj.(*corev1.Pod).DeepCopy()
			p.Spec.NodeName = "seen"
			return p, nil
		}))
		seen := &recorder{}
		look := func(what string, obj any) {
			if d, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = d.Obj
			}
			seen.note("%s %s", what, obj.(*corev1.Pod).Spec.NodeName)
		}
		_, err := inf.AddEventHandler(cache.ResourceEventHandlerFuncs{
			AddFunc:    func(obj any) { look("add", obj) },
			UpdateFunc: func(old, obj any) { look("old", old); look("new", obj) },
			DeleteFunc: func(obj any) { look("delete", obj) },
		})
		must(t, err)
		defer running(t, inf)()
		synctest.Wait()
		src.put("one")
		src.remove("one")
		src.gap(func() { src.removeLocked("two") })
		time.Sleep(2 * time.Minute)
		equal(t, "seen", seen.take(),
			[]string{"add seen", "add seen", "old seen", "new seen", "delete seen", "delete seen"})
	})
}

// TestInformerWatchErrorHandler: the handler gets the error of a failed list.
func TestInformerWatchErrorHandler(t *testing.T) {
	both(t, func(t *testing.T, s side) {
		src, refused := newSource(false), errors.New("refused")
		src.refuseWith(refused)
		with, without := s.newInformer(src, &corev1.Pod{}, 0, nil), s.newInformer(src, &corev1.Pod{}, 0, nil)
		var mu sync.Mutex
		told := map[string]error{}
		must(t, with.SetWatchErrorHandlerWithContext(func(ctx context.Context, r *cache.Reflector, err error) {
			mu.Lock()
			defer mu.Unlock()
			if ctx.Err() != nil || r.Name() == "" || r.TypeDescription() != "*v1.Pod" {
				t.Errorf("reflector %q of %q, context %v", r.Name(), r.TypeDescription(), ctx.Err())
			}
			told["with"] = err
		}))
		must(t, without.SetWatchErrorHandler(func(*cache.Reflector, error) { t.Error("the last one wins") }))
		must(t, without.SetWatchErrorHandler(func(_ *cache.Reflector, err error) {
			mu.Lock()
			defer mu.Unlock()
			told["without"] = err
		}))
		defer running(t, with)()
		defer running(t, without)()
		synctest.Wait()
		mu.Lock()
		if !errors.Is(told["with"], refused) || !errors.Is(told["without"], refused) {
			t.Errorf("told %v", told)
		}
		mu.Unlock()
		src.refuseWith(nil)
		time.Sleep(2 * time.Minute)
		if !with.HasSynced() || !without.HasSynced() {
			t.Error("not synced after the server had recovered")
		}
	})
}

// TestInformerStoreIsFilledByHand: unit tests of controllers add objects to the store before the informer runs, or
// without running it. Handlers do not get them; the first list replaces them.
func TestInformerStoreIsFilledByHand(t *testing.T) {
	eachWay(t, func(t *testing.T, s side, streams bool) {
		src := newSource(streams, "one")
		inf := s.newInformer(src, &corev1.Pod{}, 0, cache.Indexers{cache.NamespaceIndex: cache.MetaNamespaceIndexFunc})
		must(t, inf.GetStore().Replace([]any{pod("a", "zero", "900")}, "900"))
		must(t, inf.GetIndexer().Replace([]any{pod("a", "one", "700"), pod("a", "two", "800")}, "900"))
		must(t, inf.GetIndexer().Add(pod("a", "three", "1000")))
		must(t, inf.GetStore().Delete(pod("a", "three", "")))
		p := pod("a", "two", "801")
		p.Spec.NodeName = "n"
		must(t, inf.GetIndexer().Update(p))
		r, _ := handled(t, inf)
		objs, err := inf.GetIndexer().ByIndex(cache.NamespaceIndex, "a")
		must(t, err)
		equal(t, "by namespace", names(objs), []string{"one", "two"})
		got, _, _ := inf.GetStore().GetByKey("a/two")
		if got.(*corev1.Pod).Spec.NodeName != "n" {
			t.Error("not updated")
		}
		equal(t, "told before it runs", r.take(), nil)
		defer running(t, inf)()
		equal(t, "told of the first list", r.take(),
			[]string{"tombstone a/two 801", "update one 700->2 of another UID"})
		if !inf.HasSynced() || inf.LastSyncResourceVersion() != "2" {
			t.Errorf("synced %v at %q", inf.HasSynced(), inf.LastSyncResourceVersion())
		}
	})
}

// TestInformerStopsPromptly: also while a list hangs that knows nothing of contexts.
func TestInformerStopsPromptly(t *testing.T) {
	both(t, func(t *testing.T, s side) {
		hang := make(chan struct{})
		lw := &cache.ListWatch{
			ListFunc:  func(metav1.ListOptions) (runtime.Object, error) { <-hang; return nil, errors.New("late") },
			WatchFunc: func(metav1.ListOptions) (watch.Interface, error) { return nil, errors.New("no") },
		}
		stop := running(t, s.newInformer(lw, &corev1.Pod{}, 0, nil))
		synctest.Wait()
		before := time.Now()
		stop()
		if d := time.Since(before); d != 0 {
			t.Errorf("stopped after %v", d)
		}
		close(hang)
		synctest.Wait()
	})
}

// TestNewInformerWithOptions: one handler, an index, a transform.
func TestNewInformerWithOptions(t *testing.T) {
	eachWay(t, func(t *testing.T, s side, streams bool) {
		src, r := newSource(streams), &recorder{}
		src.put("one", "red")
		store, c := s.newOne(cache.InformerOptions{
			ListerWatcher: src, ObjectType: &corev1.Pod{}, Handler: r, Indexers: cache.Indexers{"label": byLabel},
			ResyncPeriod: time.Minute,
			Transform: func(obj any) (any, error) {
				p := obj.(*corev1.Pod).DeepCopy()
				p.Labels["also"] = "yes"
				return p, nil
			},
		})
		if c.HasSynced() || cache.IsDone(c.HasSyncedChecker()) {
			t.Error("synced before it runs")
		}
		defer running(t, c)()
		equal(t, "told", r.take(), []string{"add one true"})
		if !c.HasSynced() || !cache.IsDone(c.HasSyncedChecker()) || c.LastSyncResourceVersion() != "2" {
			t.Errorf("synced %v at %q", c.HasSynced(), c.LastSyncResourceVersion())
		}
		equal(t, "index", sorted(store.(cache.Indexer).ListIndexFuncValues("label")), []string{"also", "red"})
		time.Sleep(90 * time.Second)
		equal(t, "resync", r.take(), []string{"update one 2->2"})
		src.remove("one")
		equal(t, "told", r.take(), []string{"delete one 3"})
	})
}

// TestWaits: the functions that wait for caches work with each informer.
func TestWaits(t *testing.T) {
	both(t, func(t *testing.T, s side) {
		ctx := klog.NewContext(t.Context(), klog.Logger{})
		inf := s.newPlain(newSource(false, "one"), &corev1.Pod{}, 0)
		_, handle := handled(t, inf)
		soon, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		if cache.WaitForNamedCacheSyncWithContext(soon, inf.HasSynced) ||
			cache.WaitFor(soon, "", inf.HasSyncedChecker()) {
			t.Error("waited for an informer that does not run")
		}
		defer running(t, inf)()
		if !cache.WaitForCacheSync(ctx.Done(), inf.HasSynced, handle.HasSynced) ||
			!cache.WaitForNamedCacheSync("test", ctx.Done(), inf.HasSynced) ||
			!cache.WaitForNamedCacheSyncWithContext(ctx, inf.HasSynced) ||
			!cache.WaitFor(ctx, "", inf.HasSyncedChecker(), handle.HasSyncedChecker()) {
			t.Error("not synced")
		}
		if a, b := inf.HasSyncedChecker().Name(), handle.HasSyncedChecker().Name(); a == b ||
			!slices.Contains([]string{a}, "SharedIndexInformer *v1.Pod") {
			t.Errorf("names %q, %q", a, b)
		}
	})
}
