package client_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/localapi/gate"
)

var configMaps = schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"}

func anyMap() *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(configMaps)
	return u
}

func metaMap() *metav1.PartialObjectMetadata {
	m := &metav1.PartialObjectMetadata{}
	m.SetGroupVersionKind(configMaps)
	return m
}

// names lists the ConfigMaps that opts select.
func (w *world) names(opts ...client.ListOption) string {
	w.t.Helper()
	var list corev1.ConfigMapList
	if err := w.List(w.ctx, &list, opts...); err != nil {
		return err.Error()
	}
	names := []string{}
	for _, item := range list.Items {
		names = append(names, item.Name)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

func (w *world) wantNames(want string, opts ...client.ListOption) {
	w.t.Helper()
	if got := w.names(opts...); got != want {
		w.t.Errorf("list: %q, want %q", got, want)
	}
}

// The next read of a reconcile sees everything that the reconcile did, in every representation, at once and without a
// request, while the watch is an hour behind.
func TestReadsSeeWrites(t *testing.T) {
	inWorld(t, client.Options{}, func(w *world) {
		w.set(func() { w.lag = time.Hour })
		byColor := func(obj client.Object) []string { return []string{obj.GetAnnotations()["color"]} }
		w.must(w.IndexField(w.ctx, &corev1.ConfigMap{}, "color", byColor))
		w.warm(&corev1.ConfigMapList{})
		w.must(w.Get(w.ctx, client.ObjectKey{Namespace: "default", Name: "old"}, anyMap()))
		w.must(w.Get(w.ctx, client.ObjectKey{Namespace: "default", Name: "old"}, metaMap()))
		synctest.Wait()
		w.api.Audit().Reset()
		start := time.Now()

		a := configMap("a", "app", "web")
		a.Annotations = map[string]string{"color": "red"}
		w.must(w.Create(w.ctx, a))
		w.wantNames("a old")
		w.wantNames("a", client.InNamespace("default"), client.MatchingLabels{"app": "web"})
		w.wantNames("a", client.MatchingFields{"color": "red"})
		w.wantNames("a", client.MatchingFields{"metadata.name": "a"})
		w.wantNames("", client.InNamespace("kube-system"))
		for _, obj := range []client.Object{&corev1.ConfigMap{}, anyMap(), metaMap()} {
			w.must(w.Get(w.ctx, keyOf(a), obj))
			if obj.GetUID() != a.UID || obj.GetLabels()["app"] != "web" {
				t.Errorf("%T: %+v", obj, obj)
			}
		}
		// The list has the state that the selector matches now, not the one that it matched before.
		before := a.DeepCopy()
		a.Labels["app"], a.Annotations["color"] = "db", "blue"
		w.must(w.Patch(w.ctx, a, client.MergeFrom(before)))
		w.wantNames("", client.MatchingLabels{"app": "web"})
		w.wantNames("a", client.MatchingLabels{"app": "db"}, client.MatchingFields{"color": "blue"})
		w.wantNames("", client.MatchingFields{"color": "red"})

		w.must(w.Delete(w.ctx, a))
		w.wantNames("old")
		for _, obj := range []client.Object{&corev1.ConfigMap{}, anyMap(), metaMap()} {
			if err := w.Get(w.ctx, keyOf(a), obj); !apierrors.IsNotFound(err) {
				t.Errorf("%T after the deletion: %v", obj, err)
			}
		}
		// A new object gets the same name.
		w.must(w.Create(w.ctx, configMap("a")))
		w.wantNames("a old")
		w.must(w.Delete(w.ctx, configMap("old"))) // By name, of what the cache has.
		w.wantNames("a")
		if took, reads := time.Since(start), w.calls("get", "list", "watch"); took != 0 || reads != 0 {
			t.Errorf("reads waited %s and made %d requests", took, reads)
		}
	}, configMap("old"))
}

// An own write stays readable while the watch catches up. Later changes of others show as soon as the watch has them.
func TestOverlayGivesWayToTheCache(t *testing.T) {
	inWorld(t, client.Options{}, func(w *world) {
		w.set(func() { w.lag = time.Second })
		w.warm(&corev1.ConfigMapList{})
		a := configMap("a", "v", "1")
		w.must(w.Create(w.ctx, a))
		others := *a.DeepCopy()
		others.Labels["v"] = "2"
		w.must(other(w).Update(w.ctx, &others))
		for range 30 {
			var got corev1.ConfigMap
			w.must(w.Get(w.ctx, keyOf(a), &got))
			if got.Labels["v"] != "1" && got.Labels["v"] != "2" {
				t.Fatalf("read %+v", got)
			}
			time.Sleep(100 * time.Millisecond)
		}
		w.wantNames("a", client.MatchingLabels{"v": "2"})
		w.must(other(w).Delete(w.ctx, a))
		time.Sleep(1100 * time.Millisecond)
		w.wantNames("")
	})
}

// other returns a client that shares nothing with w's.
func other(w *world) *client.Cluster {
	c, err := client.New(w.api.RESTConfig(), client.Options{})
	w.must(err)
	return c
}

// The watch is cut, a third party deletes the object, and the relist does not have it. The version of the relist ends
// the overlay.
func TestDeletedByOthersWhileTheWatchWasCut(t *testing.T) {
	inWorld(t, client.Options{}, func(w *world) {
		w.warm(&corev1.ConfigMapList{})
		w.set(func() { w.cut = true })
		a := configMap("a")
		w.must(w.Create(w.ctx, a))
		w.wantNames("a")
		w.must(other(w).Delete(w.ctx, a))
		w.must(w.api.Compact(w.ctx))
		time.Sleep(time.Minute)
		w.wantNames("") // while the watch still ends at every frame
		w.set(func() { w.cut = false })
		if err := w.Get(w.ctx, keyOf(a), &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
			t.Errorf("get: %v", err)
		}
	})
}

// An object is created and deleted inside one gap of the watch. No event ever comes, and reads do not wait for one.
func TestCreatedAndDeletedInsideOneGap(t *testing.T) {
	inWorld(t, client.Options{}, func(w *world) {
		w.warm(&corev1.ConfigMapList{})
		w.set(func() { w.cut = true })
		a := configMap("a")
		w.must(w.Create(w.ctx, a))
		w.must(w.Delete(w.ctx, configMap("a"))) // by name, on a cache that never saw it
		start := time.Now()
		w.wantNames("")
		w.set(func() { w.cut = false })
		w.must(w.api.Compact(w.ctx))
		w.wantNames("")
		if took := time.Since(start); took != 0 {
			t.Errorf("reads waited %s", took)
		}
		time.Sleep(time.Hour)
		w.must(other(w).Create(w.ctx, configMap("a"))) // The slot is not poisoned.
		time.Sleep(time.Second)
		w.wantNames("a")
	})
}

// If the watch event of a delete comes before the answer, the record keeps nothing that could hide the next object.
func TestDeleteWhoseEventComesFirst(t *testing.T) {
	inWorld(t, client.Options{}, func(w *world) {
		w.warm(&corev1.ConfigMapList{})
		w.set(func() {
			w.after = func(r *gate.Request) gate.Verdict {
				if r.Verb == "delete" {
					time.Sleep(10 * time.Second)
				}
				return gate.Verdict{}
			}
		})
		w.must(w.Delete(w.ctx, configMap("a")))
		w.wantNames("")
		w.must(other(w).Create(w.ctx, configMap("a")))
		time.Sleep(time.Second)
		w.wantNames("a")
	}, configMap("a"))
}

// An object with a finalizer stays after its deletion, with a deletion timestamp. Removing the finalizer ends it.
func TestDeletionWithFinalizer(t *testing.T) {
	a := configMap("a")
	a.Finalizers = []string{"example.com/wait"}
	inWorld(t, client.Options{}, func(w *world) {
		w.set(func() { w.lag = time.Hour })
		w.warm(&corev1.ConfigMapList{})
		w.must(w.Delete(w.ctx, configMap("a")))
		var got corev1.ConfigMap
		w.must(w.Get(w.ctx, keyOf(a), &got))
		if got.DeletionTimestamp == nil {
			t.Error("the deletion is not seen")
		}
		got.Finalizers = nil
		w.must(w.Update(w.ctx, &got))
		w.wantNames("")
	}, a)
}

// The answer to a create is lost after it took effect. Reads of lists that could have the object return ErrStale until
// the cache has a list that began after the server's request timeout. Then the child is there.
func TestLostAnswerBlocksUntilAListBegunAfterTheTimeout(t *testing.T) {
	inWorld(t, client.Options{}, func(w *world) {
		w.set(func() {
			w.lag = time.Second
			w.after = func(r *gate.Request) gate.Verdict {
				if r.Verb == "create" && r.Resource == "configmaps" {
					return gate.Verdict{Action: gate.Drop}
				}
				return gate.Verdict{}
			}
		})
		w.warm(&corev1.ConfigMapList{})
		start := time.Now()
		child := configMap("", "of", "a")
		child.GenerateName = "child-"
		if err := w.Create(w.ctx, child); err == nil {
			t.Fatal("the answer was not lost")
		}
		synctest.Wait()
		w.wantNames("", client.MatchingLabels{"of": "b"}) // It cannot be in here,
		w.wantNames("", client.InNamespace("kube-system"))
		var stale *client.StaleError
		err := w.List(w.ctx, &corev1.ConfigMapList{}, client.MatchingLabels{"of": "a"}) // but here it can.
		if !errors.As(err, &stale) || !errors.Is(err, client.ErrStale) || stale.RetryAfter != time.Minute ||
			stale.Cause == nil {
			t.Fatalf("got %v", err)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("the read waited %s for what takes a minute", took)
		}
		for client.ErrStale != nil && errors.Is(err, client.ErrStale) {
			time.Sleep(time.Second)
			err = w.List(w.ctx, &corev1.ConfigMapList{}, client.MatchingLabels{"of": "a"})
		}
		if took := time.Since(start); err != nil || took < time.Minute || took > 65*time.Second {
			t.Errorf("after %s: %v", took, err)
		}
		var list corev1.ConfigMapList
		w.must(w.List(w.ctx, &list, client.MatchingLabels{"of": "a"}))
		if len(list.Items) != 1 || w.calls("list") != 1 {
			t.Errorf("%d children, after %d lists", len(list.Items), w.calls("list"))
		}
	})
}

// A refused write changes nothing and blocks nothing, and neither does one to a server that cannot be reached.
func TestRefusedWritesBlockNothing(t *testing.T) {
	inWorld(t, client.Options{}, func(w *world) {
		w.warm(&corev1.ConfigMapList{})
		if err := w.Create(w.ctx, configMap("a")); !apierrors.IsAlreadyExists(err) {
			t.Errorf("create: %v", err)
		}
		stale := configMap("a")
		stale.ResourceVersion = "1"
		if err := w.Update(w.ctx, stale); !apierrors.IsConflict(err) {
			t.Errorf("update: %v", err)
		}
		if err := w.Delete(w.ctx, configMap("none")); !apierrors.IsNotFound(err) {
			t.Errorf("delete: %v", err)
		}
		w.must(w.Create(w.ctx, configMap("dry"), client.DryRunAll))
		w.must(w.Delete(w.ctx, configMap("a"), client.DryRunAll))
		w.wantNames("a")
	}, configMap("a"))
}

// TestServerErrorIsUnknown answers writes with server errors that leave open whether the write took effect. A look at
// the server settles that: at once if the server is done with the request, otherwise after its request timeout.
func TestServerErrorIsUnknown(t *testing.T) {
	child := func() *corev1.ConfigMap {
		child := configMap("")
		child.GenerateName = "child-"
		return child
	}
	for name, c := range map[string]struct {
		err  *apierrors.StatusError
		wait time.Duration
	}{
		"internal error": {apierrors.NewInternalError(errors.New("boom")), 0},
		"timeout":        {apierrors.NewTimeoutError("the time is up", 0), time.Minute},
		"storage": {&apierrors.StatusError{ErrStatus: metav1.Status{
			Status: metav1.StatusFailure, Code: 500, Message: "etcdserver: request timed out",
		}}, time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, client.Options{}, func(w *world) {
				w.warm(&corev1.ConfigMapList{})
				w.set(func() {
					w.after = func(r *gate.Request) gate.Verdict {
						if r.Verb == "create" {
							return gate.FailWith(c.err)
						}
						return gate.Verdict{}
					}
				})
				if err := w.Create(w.ctx, child()); err == nil {
					t.Fatal("no error")
				}
				began, list := time.Now(), corev1.ConfigMapList{}
				err := w.List(w.ctx, &list)
				for errors.Is(err, client.ErrStale) {
					time.Sleep(time.Second)
					err = w.List(w.ctx, &list)
				}
				if took := time.Since(began); err != nil || len(list.Items) != 1 || took != c.wait {
					t.Errorf("%d children after %v: %v; want one after %v", len(list.Items), took, err, c.wait)
				}
			})
		})
	}
}

// With LiveIfStale the server answers where a reconcile would have to wait, and also outside of a reconcile.
func TestLiveIfStale(t *testing.T) {
	inWorld(t, client.Options{}, func(w *world) {
		w.warm(&corev1.ConfigMapList{})
		w.set(func() { w.lag = time.Hour })
		w.lose(true)
		if err := w.Patch(w.ctx, configMap("a"), client.RawPatch(types.MergePatchType,
			[]byte(`{"metadata":{"labels":{"v":"2"}}}`))); err == nil {
			t.Fatal("the answer was not lost")
		}
		for _, ctx := range []context.Context{w.ctx, w.outside} {
			var got corev1.ConfigMap
			w.must(w.Get(ctx, keyOf(configMap("a")), &got, client.LiveIfStale))
			if got.Labels["v"] != "2" {
				t.Errorf("read %v", got.Labels)
			}
		}
		w.set(func() { w.before = func(*gate.Request) gate.Verdict { return gate.Verdict{Action: gate.Drop} } })
		if err := w.Get(w.ctx, keyOf(configMap("a")), &corev1.ConfigMap{}, client.LiveIfStale); err == nil {
			t.Error("a reconcile read the server, which does not answer")
		}
		w.must(w.Get(w.outside, keyOf(configMap("a")), &corev1.ConfigMap{}, client.LiveIfStale))
	}, configMap("a", "v", "1"))
}

// The answer to DeleteAllOf does not tell the outcome for each object. The next read asks the server once and waits for
// the cache.
func TestDeleteAllOf(t *testing.T) {
	kept := configMap("kept", "app", "web")
	kept.Finalizers = []string{"example.com/wait"}
	inWorld(t, client.Options{}, func(w *world) {
		w.set(func() { w.lag = 200 * time.Millisecond })
		w.warm(&corev1.ConfigMapList{})
		w.must(
			w.DeleteAllOf(w.ctx, &corev1.ConfigMap{}, client.InNamespace("default"),
				client.MatchingLabels{"app": "web"}),
		)
		w.wantNames("db kept")
		w.wantNames("db kept")
		if n := w.calls("list"); n != 1 {
			t.Errorf("%d lists", n)
		}
	}, configMap("a", "app", "web"), configMap("b", "app", "web"), configMap("db", "app", "db"), kept)
}

// A DeleteAllOf that finds nothing to delete leaves nothing to wait for: no event of such a write would ever come.
func TestDeleteAllOfNothing(t *testing.T) {
	inWorld(t, client.Options{}, func(w *world) {
		w.set(func() { w.lag = time.Hour })
		w.warm(&corev1.ConfigMapList{})
		w.must(w.DeleteAllOf(w.ctx, &corev1.ConfigMap{}, client.InNamespace("default"),
			client.MatchingLabels{"app": "web"}))
		w.wantNames("db")
		if n, got := w.calls("list"), w.Stats(); n != 0 || got != (client.Stats{}) {
			t.Errorf("%d lists, %+v", n, got)
		}
	}, configMap("db", "app", "db"))
}

// The next read sees a write to a subresource that answers with its own kind, or with a Status.
func TestSubresources(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	inWorld(t, client.Options{}, func(w *world) {
		w.set(func() { w.lag = 500 * time.Millisecond })
		w.warm(&corev1.PodList{})
		binding := &corev1.Binding{
			ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: "default"},
			Target:     corev1.ObjectReference{Kind: "Node", Name: "n"},
		}
		w.must(w.SubResource("binding").Create(w.ctx, pod, binding))
		var got corev1.Pod
		w.must(w.Get(w.ctx, keyOf(pod), &got))
		if got.Spec.NodeName != "n" {
			t.Errorf("the pod is on %q", got.Spec.NodeName)
		}
		got.Status.Phase = corev1.PodRunning
		w.must(w.Status().Update(w.ctx, &got))
		got = corev1.Pod{}
		w.must(w.Get(w.ctx, keyOf(pod), &got))
		if got.Status.Phase != corev1.PodRunning {
			t.Errorf("phase %q", got.Status.Phase)
		}
	}, pod)
}

// The answer to a binding lacks the pod's version. A read after it does not wait for the version of a write to another
// resource: only the next bookmark would bring that version, no event of a pod.
func TestBindingBeforeAnotherResourcesWrite(t *testing.T) {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "p"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "i"}}},
	}
	inWorld(t, client.Options{}, func(w *world) {
		w.warm(&corev1.PodList{})
		binding := &corev1.Binding{Target: corev1.ObjectReference{Kind: "Node", Name: "n"}}
		w.must(w.SubResource("binding").Create(w.ctx, pod, binding))
		w.must(w.Create(w.ctx, configMap("later")))
		var got corev1.Pod
		w.must(w.Get(w.ctx, keyOf(pod), &got))
		if got.Spec.NodeName != "n" {
			t.Errorf("the pod is on %q", got.Spec.NodeName)
		}
	}, pod)
}

// Own writes of objects that the cache does not select neither appear nor block. An object that leaves the selection
// disappears.
func TestWritesOutsideTheCachesSelection(t *testing.T) {
	o := client.Options{Caches: []client.CacheOf{{Object: &corev1.ConfigMap{}}}}
	o.Caches[0].Informer.LabelSelector = "app=web"
	inWorld(t, o, func(w *world) {
		w.set(func() { w.lag = time.Hour })
		w.warm(&corev1.ConfigMapList{})
		in, out := configMap("in", "app", "web"), configMap("out")
		w.must(w.Create(w.ctx, in))
		w.must(w.Create(w.ctx, out))
		w.wantNames("in")
		if err := w.Get(w.ctx, keyOf(out), &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
			t.Errorf("get of what the cache does not select: %v", err)
		}
		in.Labels = nil
		w.must(w.Update(w.ctx, in))
		w.wantNames("")
		w.must(w.Delete(w.ctx, out))
	})
}

// The first list of a cache that is created after a write may be older than the write. Reads wait for it to catch up.
func TestCacheMadeAfterTheWrite(t *testing.T) {
	inWorld(t, client.Options{}, func(w *world) {
		w.must(w.Create(w.ctx, configMap("a")))
		w.set(func() {
			w.lag = 500 * time.Millisecond
			w.before = func(r *gate.Request) gate.Verdict {
				if r.Verb == "list" {
					return gate.Verdict{AsOf: 5} // A replica that lags.
				}
				return gate.Verdict{}
			}
		})
		w.wantNames("a")
	})
}

// Reads return copies of the cache's objects, unless the caller asks for the objects themselves.
func TestReadsAreCopies(t *testing.T) {
	inWorld(t, client.Options{}, func(w *world) {
		w.warm(&corev1.ConfigMapList{})
		var first, second, shared, again corev1.ConfigMap
		key := keyOf(configMap("a"))
		w.must(w.Get(w.ctx, key, &first))
		first.Labels["app"] = "changed"
		w.must(w.Get(w.ctx, key, &second))
		if second.Labels["app"] != "web" {
			t.Error("a change by the caller reached the cache")
		}
		if second.Kind != "ConfigMap" {
			t.Errorf("kind %q", second.Kind)
		}
		w.must(w.Get(w.ctx, key, &shared, client.ReadOnly))
		w.must(w.Get(w.ctx, key, &again, client.ReadOnly))
		if fmt.Sprintf("%p", shared.Labels) != fmt.Sprintf("%p", again.Labels) {
			t.Error("a read-only read copied")
		}
	}, configMap("a", "app", "web"))
}
