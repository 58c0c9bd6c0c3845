package controllerruntime_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestEveryUpdateReachesAHandler: a slow handler gets every state, in order, each with the state before it.
func TestEveryUpdateReachesAHandler(t *testing.T) {
	const n = 300 // More than Flyball's own handlers may lag behind.
	bothCaches(t, cache.Options{}, nil, func(w *world) {
		w.start()
		inf, err := w.GetInformer(w.ctx, &corev1.ConfigMap{})
		w.must(err)
		var last *corev1.ConfigMap
		var seen []string
		_, err = inf.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
			AddFunc: func(obj any) { last = obj.(*corev1.ConfigMap) },
			UpdateFunc: func(old, obj any) {
				time.Sleep(time.Second)
				if old != any(last) {
					w.t.Errorf("after %s the old object is %s", last.Data["i"], old.(*corev1.ConfigMap).Data["i"])
				}
				last = obj.(*corev1.ConfigMap)
				seen = append(seen, last.Data["i"])
			},
		})
		w.must(err)
		m := configMap("a", "x", nil)
		w.must(w.direct.Create(w.ctx, m))
		var want []string
		for i := range n {
			m.Data["i"] = fmt.Sprint(i % 2) // Each update takes the one before back.
			want = append(want, m.Data["i"])
			w.must(w.direct.Update(w.ctx, m))
		}
		later(time.Hour)
		if !slices.Equal(seen, want) {
			w.t.Errorf("%d updates, want %d", len(seen), n)
		}
	}, namespace("a"))
}

// TestResyncEvents: in a resync, old and new are the same object, so that predicates can recognize it. A handler
// without a resync period has the cache's.
func TestResyncEvents(t *testing.T) {
	period := time.Minute
	object := &corev1.ConfigMap{}
	for name, o := range map[string]cache.Options{
		"all": {SyncPeriod: &period},
		"of the kind": {
			SyncPeriod: new(time.Hour),
			ByObject:   map[client.Object]cache.ByObject{object: {SyncPeriod: &period}},
		},
		"of a namespace": {
			SyncPeriod:        new(time.Hour),
			DefaultNamespaces: map[string]cache.Config{"a": {SyncPeriod: &period}},
		},
		"of both": {
			ByObject: map[client.Object]cache.ByObject{
				object: {SyncPeriod: new(time.Hour), Namespaces: map[string]cache.Config{"a": {SyncPeriod: &period}}},
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			bothCaches(t, o, nil, func(w *world) {
				w.start()
				inf, err := w.GetInformer(w.ctx, object)
				w.must(err)
				syncs, slow, never := 0, 0, 0
				count := func(n *int) toolscache.ResourceEventHandler {
					return toolscache.ResourceEventHandlerFuncs{UpdateFunc: func(old, obj any) {
						if old != obj {
							w.t.Errorf("a resync from %v to %v", old, obj)
						}
						*n++
					}}
				}
				_, err = inf.AddEventHandler(count(&syncs))
				w.must(err)
				_, err = inf.AddEventHandlerWithResyncPeriod(count(&slow), 5*time.Minute)
				w.must(err)
				_, err = inf.AddEventHandlerWithOptions(count(&never),
					toolscache.HandlerOptions{ResyncPeriod: new(time.Duration)})
				w.must(err)
				later(11*time.Minute + 30*time.Second)
				if syncs < 8 || syncs > 13 || slow < 1 || slow > 2 || never != 0 {
					w.t.Errorf("in eleven minutes %d resyncs every minute, %d every five, %d never", syncs, slow, never)
				}
			}, namespace("a"), configMap("a", "x", nil))
		})
	}
}

// TestObjectsGivenToHandlers: typed objects have no kind set, others do. Handlers get the cached object itself, without
// a copy.
func TestObjectsGivenToHandlers(t *testing.T) {
	bothCaches(t, cache.Options{}, nil, func(w *world) {
		w.start()
		u := &unstructured.Unstructured{}
		u.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("ConfigMap"))
		for _, obj := range []client.Object{&corev1.ConfigMap{}, u} {
			inf, err := w.GetInformer(w.ctx, obj)
			w.must(err)
			var kinds []string
			var objs []any
			note := func(obj any) {
				kinds = append(kinds, obj.(client.Object).GetObjectKind().GroupVersionKind().Kind)
				objs = append(objs, obj)
			}
			_, err = inf.AddEventHandler(
				toolscache.ResourceEventHandlerFuncs{
					AddFunc: note, UpdateFunc: func(_, obj any) { note(obj) },
					DeleteFunc: note,
				},
			)
			w.must(err)
			synctest.Wait()
			m := configMap("a", "new", nil)
			w.must(w.direct.Create(w.ctx, m))
			w.must(w.direct.Update(w.ctx, m))
			synctest.Wait()
			_, err = inf.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{AddFunc: func(obj any,
				initial bool,
			) {
				if initial && !slices.Contains(objs, obj) {
					w.t.Error("two handlers are handed two objects")
				}
			}})
			w.must(err)
			synctest.Wait()
			w.must(w.direct.Delete(w.ctx, m))
			synctest.Wait()
			kind := "ConfigMap"
			if obj != client.Object(u) {
				kind = ""
			}
			if want := []string{kind, kind, kind, kind}; len(kinds) < 3 ||
				slices.ContainsFunc(kinds, func(k string) bool { return k != kind }) {
				w.t.Errorf("%T: kinds %q, want %q", obj, kinds, want)
			}
		}
	}, namespace("a"), configMap("a", "x", nil))
}

// TestInterruptedWatch: events that were missed while the watch was interrupted follow from the next list. A deletion
// has the last known state. For an object that was deleted and created again, client-go delivers one update; ours
// delivers a deletion and a creation, because it is another object.
func TestInterruptedWatch(t *testing.T) {
	sky := &weather{}
	bothCaches(t, cache.Options{DefaultWatchErrorHandler: quiet}, sky.gate(), func(w *world) {
		sky.set(0, false)
		w.start()
		inf, err := w.GetInformer(w.ctx, &corev1.ConfigMap{})
		w.must(err)
		var seen []string
		name := func(obj any) string {
			if gone, ok := obj.(toolscache.DeletedFinalStateUnknown); ok {
				return "stale " + gone.Key + "=" + gone.Obj.(*corev1.ConfigMap).Data["kind"]
			}
			return obj.(metav1.Object).GetName()
		}
		_, err = inf.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
			AddFunc: func(obj any, initial bool) {
				seen = append(seen, fmt.Sprintf("add %s %v", name(obj), initial))
			},
			UpdateFunc: func(_, obj any) { seen = append(seen, "update "+name(obj)) },
			DeleteFunc: func(obj any) { seen = append(seen, "delete "+name(obj)) },
		})
		w.must(err)
		synctest.Wait()
		seen = nil
		sky.set(0, true)
		w.must(w.direct.Delete(w.ctx, configMap("a", "gone", nil)))
		w.must(w.direct.Delete(w.ctx, configMap("a", "again", nil)))
		w.must(w.direct.Create(w.ctx, configMap("a", "again", nil)))
		w.must(w.direct.Create(w.ctx, configMap("a", "new", nil)))
		changed := configMap("a", "changed", nil)
		changed.Data["x"] = "y"
		w.must(w.direct.Update(w.ctx, changed))
		synctest.Wait()
		w.must(w.api.Compact(w.ctx))
		sky.set(0, false)
		later(10 * time.Minute)
		slices.Sort(seen)
		want := []string{"add new false", "delete stale a/gone=gone", "update again", "update changed"}
		if w.ours() {
			want = []string{
				"add again false", "add new false", "delete stale a/again=again",
				"delete stale a/gone=gone", "update changed",
			}
		}
		if !slices.Equal(seen, want) {
			w.t.Errorf("got %s, want %s", strings.Join(seen, ", "), strings.Join(want, ", "))
		}
	}, namespace("a"), configMap("a", "gone", nil), configMap("a", "again", nil), configMap("a", "changed", nil))
}
