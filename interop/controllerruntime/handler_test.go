package controllerruntime_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flyball-dev/flyball/interop/controllerruntime"
	"github.com/flyball-dev/flyball/localapi"
)

// events records the calls of a handler. The lock is for controller-runtime's cache: over several namespaces it calls a
// handler from several goroutines at once.
type events struct {
	mu  sync.Mutex
	all []string
}

func (e *events) note(text string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, text)
}

func (e *events) handler() toolscache.ResourceEventHandler {
	name := func(obj any) string {
		if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
			return "stale " + gone.Key
		}
		return obj.(metav1.Object).GetNamespace() + "/" + obj.(metav1.Object).GetName()
	}
	return toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc:    func(obj any, initial bool) { e.note(fmt.Sprintf("add %s %v", name(obj), initial)) },
		UpdateFunc: func(_, obj any) { e.note("update " + name(obj)) },
		DeleteFunc: func(obj any) { e.note("delete " + name(obj)) },
	}
}

func TestHandlers(t *testing.T) {
	for name, o := range map[string]cache.Options{
		"one informer":      {},
		"several informers": {DefaultNamespaces: map[string]cache.Config{"b": {}, "c": {LabelSelector: webOnly}}},
	} {
		t.Run(name, func(t *testing.T) {
			o.ByObject = map[client.Object]cache.ByObject{
				&corev1.ConfigMap{}: {Field: fields.OneTermNotEqualSelector("metadata.namespace", "a")},
			}
			bothCaches(t, o, nil, func(w *world) {
				inf, err := w.GetInformer(w.ctx, &corev1.ConfigMap{})
				w.must(err)
				var seen, late events
				r, err := inf.AddEventHandler(seen.handler())
				w.must(err)
				if inf.HasSynced() || r.HasSynced() || inf.IsStopped() {
					w.t.Error("synced or stopped before it began")
				}
				checker := inf.HasSyncedChecker()
				w.start()
				if !w.WaitForCacheSync(w.ctx) {
					w.t.Error("not synced")
				}
				synctest.Wait()
				checkers := map[string]<-chan struct{}{
					"informer": checker.Done(),
					"handler":  r.HasSyncedChecker().Done(),
				}
				synctest.Wait()
				for what, done := range checkers {
					select {
					case <-done:
					default:
						w.t.Errorf("the checker of the %s is not done", what)
					}
				}
				if !inf.HasSynced() || !r.HasSynced() {
					w.t.Error("not synced")
				}
				five := configMap("b", "five", nil)
				w.must(w.direct.Create(w.ctx, five))
				five.Data["x"] = "y"
				w.must(w.direct.Update(w.ctx, five))
				w.must(w.direct.Delete(w.ctx, five))
				synctest.Wait()
				again, err := inf.AddEventHandlerWithResyncPeriod(late.handler(), 20*time.Hour)
				w.must(err)
				synctest.Wait()
				got := map[string]bool{}
				for _, e := range seen.all {
					got[e] = true
				}
				w.want("told", got, "add b/three true", "add c/four true", "add b/five false", "update b/five",
					"delete b/five")
				if len(late.all) != 2 {
					w.t.Errorf("a late handler got %v", late.all)
				}
				w.must(inf.RemoveEventHandler(r))
				w.must(inf.RemoveEventHandler(r))
				w.must(inf.AddIndexers(toolscache.Indexers{"any": func(any) ([]string, error) { return nil, nil }}))
				if err := inf.AddIndexers(
					toolscache.Indexers{"any": func(any) ([]string, error) { return nil, nil }},
				); err == nil {
					w.t.Error("an index made twice")
				}
				before := len(seen.all)
				w.must(w.direct.Create(w.ctx, configMap("b", "six", nil)))
				synctest.Wait()
				if len(seen.all) != before || len(late.all) != 3 {
					w.t.Errorf("after removal: %v, %v", seen.all[before:], late.all)
				}
				w.must(inf.RemoveEventHandler(again))
				w.must(w.RemoveInformer(w.ctx, &corev1.ConfigMap{}))
				synctest.Wait()
				if !inf.IsStopped() {
					w.t.Error("not stopped")
				}
				if _, err := inf.AddEventHandler(late.handler()); err == nil {
					w.t.Error("a stopped informer takes a handler")
				}
				w.want("anew", w.names(client.InNamespace("b")), "b/three", "b/six")
			}, three()...)
		})
	}
}

// TestSyncedCheckers: the checker of an informer or handler that has synced is done at the first call, however often it
// is asked for. Asking for it does not change the informer.
func TestSyncedCheckers(t *testing.T) {
	for name, o := range map[string]cache.Options{
		"one informer":      {},
		"several informers": {DefaultNamespaces: map[string]cache.Config{"a": {}, "b": {LabelSelector: webOnly}}},
	} {
		t.Run(name, func(t *testing.T) {
			bothCaches(t, o, nil, func(w *world) {
				early, err := w.GetInformer(w.ctx, &corev1.ConfigMap{})
				w.must(err)
				w.start()
				inf, err := w.GetInformer(w.ctx, &corev1.ConfigMap{})
				w.must(err)
				var seen events
				r, err := inf.AddEventHandler(seen.handler())
				w.must(err)
				synctest.Wait()
				for what, checker := range map[string]func() toolscache.DoneChecker{
					"early": early.HasSyncedChecker, "informer": inf.HasSyncedChecker, "handler": r.HasSyncedChecker,
				} {
					if !toolscache.IsDone(checker()) {
						w.t.Errorf("%s: synced, and not done", what)
					}
					if first, second := checker().Done(), checker().Done(); w.ours() &&
						(first != second || checker().Name() == "") {
						w.t.Errorf("%s: another channel at each call, or no name", what)
					}
				}
				if ours, ok := w.Cache.(*controllerruntime.Cache); ok {
					for _, s := range ours.Stats() {
						if len(s.Handlers) != 1 {
							w.t.Errorf("%d handlers, one was added", len(s.Handlers))
						}
					}
				}
				w.must(inf.RemoveEventHandler(r))
			}, three()...)
		})
	}
}

// TestInformersAreSyncedWhenTheyAreReturned: GetInformer of a cache that runs returns an informer that has synced,
// and whose checker is done at the first look, also where namespaces have informers of their own. There
// controller-runtime's checker is done a moment later, when a goroutine has looked. The test runs outside a bubble,
// which would let that goroutine run first.
func TestInformersAreSyncedWhenTheyAreReturned(t *testing.T) {
	for name, o := range map[string]cache.Options{
		"all namespaces":                 {},
		"one informer of two namespaces": {DefaultNamespaces: map[string]cache.Config{"a": {}, "b": {}}},
		"two informers": {
			DefaultNamespaces: map[string]cache.Config{"a": {}, "b": {LabelSelector: webOnly}},
		},
		"three informers": {DefaultNamespaces: map[string]cache.Config{
			"a": {}, "b": {LabelSelector: webOnly},
			cache.AllNamespaces: {LabelSelector: labels.Everything(), UnsafeDisableDeepCopy: new(true)},
		}},
	} {
		for kind, newCache := range makers {
			t.Run(name+"/"+kind, func(t *testing.T) {
				api := localapi.NewTest(t, three()...)
				c, err := newCache(api.RESTConfig(), o)
				if err != nil {
					t.Fatal(err)
				}
				var wg sync.WaitGroup
				defer wg.Wait()
				ctx, stop := context.WithCancel(t.Context())
				defer stop()
				wg.Go(func() { _ = c.Start(ctx) })
				if !c.WaitForCacheSync(ctx) {
					t.Fatal("not started")
				}
				for range 5 {
					inf, err := c.GetInformer(ctx, &corev1.ConfigMap{})
					if err != nil {
						t.Fatal(err)
					}
					if !inf.HasSynced() {
						t.Fatal("returned before it synced")
					}
					if !toolscache.IsDone(inf.HasSyncedChecker()) && strings.HasPrefix(kind, "flyball") {
						t.Fatal("its checker is not done when it is returned")
					}
					if err := c.RemoveInformer(ctx, &corev1.ConfigMap{}); err != nil {
						t.Fatal(err)
					}
				}
			})
		}
	}
}

// TestHandlersAreCalledOneAtATime: a handler is never called concurrently, even over several informers. That is the
// contract of cache.Informer, which controller-runtime's own cache breaks there.
func TestHandlersAreCalledOneAtATime(t *testing.T) {
	o := cache.Options{
		DefaultNamespaces: map[string]cache.Config{
			"a": {}, "b": {LabelSelector: labels.Everything()},
			"c": {LabelSelector: webOnly},
		},
	}
	bothCaches(t, o, nil, func(w *world) {
		inf, err := w.GetInformer(w.ctx, &corev1.ConfigMap{})
		w.must(err)
		var running, most, calls atomic.Int32
		_, err = inf.AddEventHandler(toolscache.ResourceEventHandlerFuncs{AddFunc: func(any) {
			most.Store(max(most.Load(), running.Add(1)))
			time.Sleep(time.Second)
			running.Add(-1)
			calls.Add(1)
		}})
		w.must(err)
		w.start()
		time.Sleep(time.Minute)
		if calls.Load() != 4 || (w.ours() && most.Load() != 1) {
			w.t.Errorf("%d calls, up to %d at once", calls.Load(), most.Load())
		}
		if !w.ours() && most.Load() < 2 {
			w.t.Errorf("%s: handlers are called one at a time", changed)
		}
	}, three()...)
}

func TestInformerForKind(t *testing.T) {
	bothCaches(t, cache.Options{SyncPeriod: new(time.Minute)}, nil, func(w *world) {
		w.start()
		inf, err := w.GetInformerForKind(w.ctx, corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		w.must(err)
		if !inf.HasSynced() {
			w.t.Error("returned before it synced")
		}
		var seen events
		_, err = inf.AddEventHandlerWithOptions(seen.handler(), toolscache.HandlerOptions{})
		w.must(err)
		time.Sleep(3 * time.Minute)
		synctest.Wait()
		w.must(w.direct.Delete(w.ctx, configMap("a", "one", nil)))
		synctest.Wait()
		if n := strings.Count(strings.Join(seen.all, "\n"), "update a/two"); n < 1 || n > 3 {
			w.t.Errorf("%d resyncs in three minutes: %v", n, seen.all)
		}
		if _, err := w.GetInformerForKind(w.ctx, corev1.SchemeGroupVersion.WithKind("Unheard")); err == nil {
			w.t.Error("a kind that the scheme does not know")
		}
	}, three()...)
}

// TestHandlersOfAKind: GetInformerForKind returns the informer that GetInformer returns. A caller that asks not to wait
// does not wait.
func TestHandlersOfAKind(t *testing.T) {
	sky := &weather{}
	o := cache.Options{DefaultWatchErrorHandler: quiet}
	bothCaches(t, o, sky.gate(), func(w *world) {
		sky.set(0, true)
		w.start()
		inf, err := w.GetInformer(w.ctx, &corev1.ConfigMap{}, cache.BlockUntilSynced(false))
		w.must(err)
		if inf.HasSynced() {
			w.t.Error("synced without a list")
		}
		ctx, cancel := context.WithTimeout(w.ctx, time.Second)
		defer cancel()
		if _, err := w.GetInformer(ctx, &corev1.ConfigMap{}, cache.BlockUntilSynced(true)); err == nil {
			w.t.Error("returned before it synced")
		}
		sky.set(0, false)
		time.Sleep(10 * time.Minute)
		if !inf.HasSynced() {
			w.t.Error("not synced")
		}
	}, three()...)
}

// quiet replaces client-go's handler, which limits its rate by the clock outside of the bubble.
func quiet(context.Context, *toolscache.Reflector, error) {}
