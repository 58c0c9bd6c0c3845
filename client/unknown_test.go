package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/localapi/gate"
)

// lostWrites are the writes whose answers the tests lose.
var lostWrites = map[string]struct {
	write func(w *world) error
	// want is the object's label "v" if the write took effect; "" means that there is no object.
	want string
	// harmsLate reports whether reads wait until the write can no longer be applied.
	harmsLate bool
}{
	"create": {write: func(w *world) error { return w.Create(w.ctx, configMap("new", "v", "2")) }, want: "2"},
	"update": {write: func(w *world) error {
		return w.Update(w.ctx, configMap("a", "v", "2"))
	}, want: "2", harmsLate: true},
	"update of one version": {write: func(w *world) error {
		var a corev1.ConfigMap
		w.must(w.Get(w.ctx, keyOf(configMap("a")), &a))
		a.Labels["v"] = "2"
		return w.Update(w.ctx, &a)
	}, want: "2"},
	"update of one object": {write: func(w *world) error { // Of any version of it.
		var a corev1.ConfigMap
		w.must(w.Get(w.ctx, keyOf(configMap("a")), &a))
		a.ResourceVersion, a.Labels["v"] = "", "2"
		return w.Update(w.ctx, &a)
	}, want: "2", harmsLate: true},
	"delete of one object": {write: func(w *world) error {
		var a corev1.ConfigMap
		w.must(w.Get(w.ctx, keyOf(configMap("a")), &a))
		return w.Delete(w.ctx, &a, client.OnlyThis(&a))
	}},
	"apply": {write: func(w *world) error {
		a := anyNamed("a")
		a.SetLabels(map[string]string{"v": "2"})
		return w.Apply(w.ctx, client.ApplyConfigurationFromUnstructured(a), client.FieldOwner("me"),
			client.ForceOwnership)
	}, want: "2"},
	"patch of one version": {write: func(w *world) error {
		var a corev1.ConfigMap
		w.must(w.Get(w.ctx, keyOf(configMap("a")), &a))
		before := a.DeepCopy()
		a.Labels["v"] = "2"
		return w.Patch(w.ctx, &a, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	}, want: "2"},
	"JSON patch of one version": {write: func(w *world) error {
		var a corev1.ConfigMap
		w.must(w.Get(w.ctx, keyOf(configMap("a")), &a))
		return w.Patch(w.ctx, &a, client.RawPatch(types.JSONPatchType, fmt.Appendf(nil, `[
			{"op": "test", "path": "/metadata/resourceVersion", "value": %q},
			{"op": "replace", "path": "/metadata/labels/v", "value": "2"}]`, a.ResourceVersion)))
	}, want: "2"},
	"JSON patch of one object": {write: func(w *world) error { // It may add an element twice.
		var a corev1.ConfigMap
		w.must(w.Get(w.ctx, keyOf(configMap("a")), &a))
		return w.Patch(w.ctx, &a, client.RawPatch(types.JSONPatchType, fmt.Appendf(nil, `[
			{"op": "test", "path": "/metadata/uid", "value": %q},
			{"op": "add", "path": "/metadata/finalizers", "value": ["example.com/v"]},
			{"op": "replace", "path": "/metadata/labels/v", "value": "2"}]`, a.UID)))
	}, want: "2", harmsLate: true},
	"merge patch": {write: func(w *world) error {
		return w.Patch(w.ctx, configMap("a"), client.RawPatch(types.MergePatchType,
			[]byte(`{"metadata":{"labels":{"v":"2"}}}`)))
	}, want: "2", harmsLate: true},
	"JSON patch": {write: func(w *world) error {
		return w.Patch(w.ctx, configMap("a"), client.RawPatch(types.JSONPatchType,
			[]byte(`[{"op": "replace", "path": "/metadata/labels/v", "value": "2"}]`)))
	}, want: "2", harmsLate: true},
}

// TestLostAnswers loses the answer of each kind of write, once after the write took effect and once before. A reconcile
// cannot read the object until it is known which. For a write that does no harm late, one look at the server is enough;
// for others the look has to wait for the server's request timeout. Other objects are read as usual, and no other
// request is made. Reads outside of a reconcile are answered from the cache.
func TestLostAnswers(t *testing.T) {
	for verb, c := range lostWrites {
		for _, applied := range []bool{true, false} {
			t.Run(verb+map[bool]string{true: " applied", false: " not applied"}[applied], func(t *testing.T) {
				key, want := keyOf(configMap("a")), "1"
				if verb == "create" {
					key, want = keyOf(configMap("new")), ""
				}
				if applied {
					want = c.want
				}
				inWorld(t, client.Options{}, func(w *world) {
					w.warm(&corev1.ConfigMapList{})
					w.lose(applied)
					if err := c.write(w); err == nil {
						t.Fatal("the answer was not lost")
					}
					w.set(func() { w.before, w.after = nil, nil })
					w.api.Audit().Reset()
					read := func(ctx context.Context) string {
						var got corev1.ConfigMap
						if err := client.IgnoreNotFound(w.Get(ctx, key, &got)); err != nil {
							return err.Error()
						}
						return got.Labels["v"]
					}
					for range 59 {
						if !c.harmsLate {
							break
						}
						if err := w.Get(w.ctx, key, &corev1.ConfigMap{}); !errors.Is(err, client.ErrStale) {
							t.Fatalf("read %v", err)
						}
						w.must(w.Get(w.ctx, keyOf(configMap("b")), &corev1.ConfigMap{}))
						synctest.Wait()
						if got := read(w.outside); got != want {
							t.Fatalf("outside of a reconcile: read %q; want %q", got, want)
						}
						time.Sleep(time.Second)
					}
					if c.harmsLate {
						time.Sleep(2 * time.Second)
					}
					began := time.Now()
					if got := read(w.ctx); got != want || time.Since(began) != 0 {
						t.Errorf("read %q after %v; want %q", got, time.Since(began), want)
					}
					if n := w.calls("get", "list", "watch"); n != 1 {
						t.Errorf("%d reads of the server", n)
					}
				}, configMap("a", "v", "1"), configMap("b"))
			})
		}
	}
}

// TestLateDeletion loses deletions of a name that the server has not applied yet. The reconcile that looks, deletes the
// object again and makes a new one must not lose the new one to the first deletion. Once the server shows that the
// deletion took effect, it cannot take anything else.
func TestLateDeletion(t *testing.T) {
	for name, c := range map[string]struct {
		applied bool
		objects []runtime.Object
		blocked bool
	}{
		"the object is there": {objects: []runtime.Object{configMap("a")}, blocked: true},
		"no object was known": {blocked: true},
		"the object is gone":  {applied: true, objects: []runtime.Object{configMap("a")}},
	} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, client.Options{}, func(w *world) {
				w.warm(&corev1.ConfigMapList{})
				w.lose(c.applied)
				if err := w.Delete(w.ctx, configMap("a")); err == nil {
					t.Fatal("the answer was not lost")
				}
				w.set(func() { w.before, w.after = nil, nil })
				read := func(ctx context.Context) error {
					return client.IgnoreNotFound(w.Get(ctx, keyOf(configMap("a")), &corev1.ConfigMap{}))
				}
				for range 59 {
					if err := read(w.ctx); errors.Is(err, client.ErrStale) != c.blocked {
						t.Fatalf("read %v", err)
					}
					w.must(read(w.outside))
					time.Sleep(time.Second)
				}
				time.Sleep(2 * time.Second)
				w.must(read(w.ctx))
				if n := w.calls("get", "list"); n > 2 {
					t.Errorf("%d reads of the server", n)
				}
			}, c.objects...)
		})
	}
}

// TestServerThatCannotBeAsked drops the request by which a reconcile asks what became of a write. The error says when
// to come back, and until then no read asks again. Reads outside of a reconcile are answered as usual.
func TestServerThatCannotBeAsked(t *testing.T) {
	inWorld(t, client.Options{}, func(w *world) {
		w.warm(&corev1.ConfigMapList{})
		var a corev1.ConfigMap
		w.must(w.Get(w.ctx, keyOf(configMap("a")), &a))
		w.lose(false)
		if err := w.Delete(w.ctx, &a, client.OnlyThis(&a)); err == nil {
			t.Fatal("the answer was not lost")
		}
		asked := 0
		w.set(func() {
			w.before = func(r *gate.Request) gate.Verdict {
				if r.Verb == "list" {
					asked++
					return gate.Verdict{Action: gate.Drop}
				}
				return gate.Verdict{}
			}
		})
		for range 10 {
			var stale *client.StaleError
			err := w.Get(w.ctx, keyOf(configMap("a")), &corev1.ConfigMap{})
			if !errors.As(err, &stale) || stale.RetryAfter <= time.Second {
				t.Fatalf("get: %v", err)
			}
			w.must(w.Get(w.outside, keyOf(configMap("a")), &corev1.ConfigMap{}))
			time.Sleep(100 * time.Millisecond)
		}
		if asked != 1 {
			t.Errorf("the server was asked %d times", asked)
		}
		w.set(func() { w.before = nil })
		w.must(w.Get(w.ctx, keyOf(configMap("a")), &corev1.ConfigMap{}))
	}, configMap("a"))
}

// TestWriteWhileTheServerIsAsked writes again while the server is asked about a lost write. The answer is older than
// the second write, and reads see the second write.
func TestWriteWhileTheServerIsAsked(t *testing.T) {
	inWorld(t, client.Options{}, func(w *world) {
		w.set(func() { w.lag = time.Hour })
		w.warm(&corev1.ConfigMapList{})
		w.lose(false)
		if err := w.Create(w.ctx, configMap("a")); err == nil {
			t.Fatal("the answer was not lost")
		}
		w.set(func() {
			w.before, w.after = nil, func(r *gate.Request) gate.Verdict {
				if r.Verb == "list" {
					w.must(w.Create(w.ctx, configMap("a", "v", "2")))
				}
				return gate.Verdict{}
			}
		})
		var got corev1.ConfigMap
		if err := w.Get(w.ctx, keyOf(configMap("a")), &got); err != nil || got.Labels["v"] != "2" {
			t.Errorf("read %v, %v", got.Labels, err)
		}
	})
}

// The answer to a patch without a precondition is lost. It blocks the lists that have the object before or after the
// patch, and no others.
func TestLostPatchBlocksItsLists(t *testing.T) {
	byOwner := func(obj client.Object) []string { return []string{obj.GetAnnotations()["owner"]} }
	for name, patch := range map[string]client.Patch{
		"merge": client.RawPatch(types.MergePatchType,
			[]byte(`{"metadata":{"labels":{"app":"db"},"annotations":{"owner":"2"}}}`)),
		"strategic": client.RawPatch(types.StrategicMergePatchType,
			[]byte(`{"metadata":{"labels":{"app":"db"},"annotations":{"owner":"2"}}}`)),
		"JSON": client.RawPatch(types.JSONPatchType, []byte(`[
			{"op": "replace", "path": "/metadata/labels/app", "value": "db"},
			{"op": "replace", "path": "/metadata/annotations/owner", "value": "2"}]`)),
	} {
		t.Run(name, func(t *testing.T) {
			a := configMap("a", "app", "web")
			a.Annotations = map[string]string{"owner": "1"}
			inWorld(t, client.Options{}, func(w *world) {
				w.must(w.IndexField(w.ctx, &corev1.ConfigMap{}, "owner", byOwner))
				w.warm(&corev1.ConfigMapList{})
				w.lose(false)
				if err := w.Patch(w.ctx, configMap("a"), patch); err == nil {
					t.Fatal("the answer was not lost")
				}
				for _, c := range []struct {
					blocked bool
					opts    []client.ListOption
				}{
					{true, nil},
					{false, []client.ListOption{client.InNamespace("kube-system")}},
					{true, []client.ListOption{client.MatchingLabels{"app": "web"}}},
					{true, []client.ListOption{client.MatchingLabels{"app": "db"}}},
					{false, []client.ListOption{client.MatchingLabels{"app": "cache"}}},
					{true, []client.ListOption{client.MatchingFields{"owner": "1"}}},
					{true, []client.ListOption{client.MatchingFields{"owner": "2"}}},
					{false, []client.ListOption{client.MatchingFields{"owner": "3"}}},
				} {
					err := w.List(w.ctx, &corev1.ConfigMapList{}, c.opts...)
					if errors.Is(err, client.ErrStale) != c.blocked {
						t.Errorf("list %v: %v, want blocked: %v", c.opts, err, c.blocked)
					}
					w.must(w.List(w.outside, &corev1.ConfigMapList{}, c.opts...))
				}
			}, a)
		})
	}
}

// Outside of a reconcile, the server answers where the cache does not show an answered write in time: with what the
// cache would hold and the query selects. If the server cannot be asked either, the answer is the cache's.
func TestReadsOutsideOfAReconcile(t *testing.T) {
	o := client.Options{Caches: []client.CacheOf{{Object: &corev1.ConfigMap{}}}}
	o.Caches[0].Informer.LabelSelector = "app=web"
	o.Caches[0].Informer.TransformName = "shorten the color"
	o.Caches[0].Informer.Transform = func(obj informer.Object) (informer.Object, error) {
		if color := obj.GetAnnotations()["color"]; color != "" {
			obj = obj.DeepCopyObject().(informer.Object)
			obj.SetAnnotations(map[string]string{"color": color[:1]})
		}
		return obj, nil
	}
	byColor := func(obj client.Object) []string { return []string{obj.GetAnnotations()["color"]} }
	red := configMap("red", "app", "web")
	red.Annotations = map[string]string{"color": "red"}
	inWorld(t, o, func(w *world) {
		w.must(w.IndexField(w.ctx, &corev1.ConfigMap{}, "color", byColor))
		w.warm(&corev1.ConfigMapList{})
		w.set(func() { w.lag = time.Hour })
		w.must(w.DeleteAllOf(w.ctx, &corev1.ConfigMap{}, client.InNamespace("default"),
			client.MatchingLabels{"old": "yes"}))
		if got := w.names(); !strings.Contains(got, client.ErrStale.Error()) {
			t.Errorf("list in a reconcile: %q", got)
		}
		w.ctx = w.outside
		w.wantNames("blue red")
		w.wantNames("red", client.MatchingFields{"color": "r"})
		w.wantNames("", client.InNamespace("kube-system"))
		var got corev1.ConfigMap
		if w.must(w.Get(w.ctx, keyOf(red), &got)); got.Annotations["color"] != "r" {
			t.Errorf("get: annotations %v, want them as in the cache", got.Annotations)
		}
		for _, name := range []string{"old", "other"} { // Deleted; and not of the cache.
			if err := w.Get(w.ctx, keyOf(configMap(name)), &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
				t.Errorf("get %s: %v", name, err)
			}
		}
		w.set(func() { w.before = func(*gate.Request) gate.Verdict { return gate.Verdict{Action: gate.Drop} } })
		w.wantNames("blue old red")
		w.must(w.Get(w.ctx, keyOf(configMap("old")), &corev1.ConfigMap{}))
	}, red, configMap("blue", "app", "web"), configMap("old", "app", "web", "old", "yes"), configMap("other"))
}

// TestFormsReadOutsideOfAReconcile reads from the server, in place of a cache that is behind a DeleteAllOf, in the
// forms of objects without a Go type.
func TestFormsReadOutsideOfAReconcile(t *testing.T) {
	gvk := corev1.SchemeGroupVersion.WithKind("ConfigMap")
	untyped, metadata := &unstructured.UnstructuredList{}, &metav1.PartialObjectMetadataList{}
	untyped.SetGroupVersionKind(gvk.GroupVersion().WithKind("ConfigMapList"))
	metadata.SetGroupVersionKind(gvk.GroupVersion().WithKind("ConfigMapList"))
	one, its := &unstructured.Unstructured{}, &metav1.PartialObjectMetadata{}
	for name, c := range map[string]struct {
		list client.ObjectList
		obj  client.Object
	}{"unstructured": {untyped, one}, "metadata": {metadata, its}} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, client.Options{}, func(w *world) {
				w.warm(c.list)
				w.set(func() { w.lag = time.Hour })
				w.must(w.DeleteAllOf(w.ctx, &corev1.ConfigMap{}, client.InNamespace("default"),
					client.MatchingLabels{"old": "yes"}))
				w.must(w.List(w.outside, c.list))
				if n := meta.LenList(c.list); n != 1 {
					t.Errorf("%d objects are listed, want 1", n)
				}
				c.obj.GetObjectKind().SetGroupVersionKind(gvk)
				w.must(w.Get(w.outside, keyOf(configMap("a")), c.obj))
				err := w.Get(w.outside, keyOf(configMap("old")), c.obj)
				if !apierrors.IsNotFound(err) || c.obj.GetObjectKind().GroupVersionKind() != gvk {
					t.Errorf("get: %v, %v", err, c.obj.GetObjectKind())
				}
			}, configMap("a"), configMap("old", "old", "yes"))
		})
	}
}

// tripper is a transport that calls a function.
type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// A write whose goroutine panics after the server got the request counts as one with a lost answer. The panic goes on,
// and the record does not wait for an answer.
func TestPanicInAWrite(t *testing.T) {
	var armed atomic.Bool
	s := setup{wrap: func(next http.RoundTripper) http.RoundTripper {
		return tripper(func(r *http.Request) (*http.Response, error) {
			answer, err := next.RoundTrip(r)
			if r.Method == http.MethodPost && armed.Load() {
				panic("on its way")
			}
			return answer, err
		})
	}}
	s.run(t, func(w *world) {
		w.warm(&corev1.ConfigMapList{})
		armed.Store(true)
		func() {
			defer func() {
				if recover() != "on its way" {
					t.Error("the panic was swallowed")
				}
			}()
			a := configMap("")
			a.GenerateName = "a-"
			_ = w.Create(client.WithOwner(w.ctx, "me"), a)
		}()
		var stale *client.StaleError
		if err := w.List(w.ctx, &corev1.ConfigMapList{}); !errors.As(err, &stale) || stale.Cause == nil {
			t.Errorf("list: %v", err)
		}
		if err := w.Ready(w.ctx, "me"); !errors.Is(err, client.ErrStale) {
			t.Errorf("ready: %v", err)
		}
		time.Sleep(61 * time.Second)
		w.must(w.List(w.ctx, &corev1.ConfigMapList{}))
		w.must(w.Ready(w.ctx, "me"))
	})
}

// A request that the server is too busy for is repeated after the pause that the server asks for. It was not applied,
// so nothing is in doubt, and the object is created once. The client gives up if the server stays busy or the context
// ends.
func TestTooBusy(t *testing.T) {
	busy := func(times int, asked *int) func(r *gate.Request) gate.Verdict {
		return func(r *gate.Request) gate.Verdict {
			if r.Verb != "create" {
				return gate.Verdict{}
			}
			if *asked++; *asked <= times {
				return gate.FailWith(apierrors.NewTooManyRequests("busy", 3))
			}
			return gate.Verdict{}
		}
	}
	inWorld(t, client.Options{}, func(w *world) {
		w.warm(&corev1.ConfigMapList{})
		asked, start := 0, time.Now()
		w.set(func() { w.before = busy(4, &asked) })
		w.must(w.Create(w.ctx, configMap("a")))
		if took := time.Since(start); asked != 5 || took != 12*time.Second {
			t.Errorf("asked %d times in %s", asked, took)
		}
		w.wantNames("a")

		asked = 0
		w.set(func() { w.before = busy(1000, &asked) })
		if err := w.Create(w.ctx, configMap("b")); !apierrors.IsTooManyRequests(err) || asked != 11 {
			t.Errorf("asked %d times: %v", asked, err)
		}
		w.wantNames("a") // Known not to be there.

		asked, start = 0, time.Now()
		w.set(func() {
			w.before = func(r *gate.Request) gate.Verdict {
				if asked++; asked == 1 && r.Verb == "create" {
					return gate.FailWith(apierrors.NewTooManyRequests("busy", 24*60*60))
				}
				return gate.Verdict{}
			}
		})
		w.must(w.Create(w.ctx, configMap("patient")))
		if took := time.Since(start); took != 5*time.Minute {
			t.Errorf("a server that asked for a day was asked again after %s, want five minutes", took)
		}
		w.must(w.Delete(w.ctx, configMap("patient")))
		w.set(func() { w.before = busy(1000, &asked) })

		ctx, cancel := context.WithTimeout(w.ctx, 10*time.Second)
		defer cancel()
		asked, start = 0, time.Now()
		if err := w.Create(ctx, configMap("c")); !apierrors.IsTooManyRequests(err) || asked != 4 ||
			time.Since(start) != 10*time.Second {
			t.Errorf("asked %d times in %s: %v", asked, time.Since(start), err)
		}
		w.wantNames("a")
	})
}

// A cache of two namespaces has a watch and a watermark for each. Own writes in the one that lags appear in lists of it
// and of both. Own writes in a third namespace neither appear nor block.
func TestCacheOfSeveralNamespaces(t *testing.T) {
	in := func(namespace, name string) *corev1.ConfigMap {
		m := configMap(name, "app", "web")
		m.Namespace = namespace
		return m
	}
	o := client.Options{Caches: []client.CacheOf{{Object: &corev1.ConfigMap{}}}}
	o.Caches[0].Informer.Namespaces = []string{"default", "kube-system"}
	inWorld(t, o, func(w *world) {
		w.set(func() { w.lag = time.Hour })
		w.warm(&corev1.ConfigMapList{})
		web := client.MatchingLabels{"app": "web"}
		for _, namespace := range []string{"default", "kube-system", "kube-public"} {
			w.must(w.Create(client.WithOwner(w.ctx, namespace), in(namespace, "a")))
		}
		w.wantNames("a a", web)
		w.wantNames("a", web, client.InNamespace("kube-system"))
		w.wantNames("", web, client.InNamespace("kube-public"))
		if err := w.Get(w.ctx, keyOf(in("kube-public", "a")), &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
			t.Errorf("get of what the cache does not follow: %v", err)
		}
		w.must(w.Ready(w.ctx, "kube-public"))
		if err := w.Ready(w.ctx, "default"); !errors.Is(err, client.ErrStale) {
			t.Errorf("ready: %v", err)
		}
		w.must(w.Delete(w.ctx, in("default", "a")))
		w.wantNames("a", web)
		w.must(w.DeleteAllOf(w.ctx, &corev1.ConfigMap{}, client.InNamespace("kube-public"), web))
		w.wantNames("a", web)
		time.Sleep(2 * time.Hour)
		w.wantNames("a", web)
		w.must(w.Ready(w.ctx, "default"))
		synctest.Wait()
	})
}
