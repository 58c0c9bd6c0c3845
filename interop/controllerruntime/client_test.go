package controllerruntime_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	corev1apply "k8s.io/client-go/applyconfigurations/core/v1"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/flyball-dev/flyball/localapi/auth"
	"github.com/flyball-dev/flyball/localapi/gate"
)

// weather is a gate that holds up watches of ConfigMaps.
type weather struct {
	mu sync.Mutex
	// lag is how long a frame takes; cut ends watches at their next frame and refuses new ones, lists included.
	lag time.Duration
	cut bool
}

func (w *weather) set(lag time.Duration, cut bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lag, w.cut = lag, cut
}

func (w *weather) now() (time.Duration, bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lag, w.cut
}

func (w *weather) gate() gate.Gate {
	return gate.Funcs{
		OnRequest: func(_ context.Context, r *gate.Request) gate.Verdict {
			if _, cut := w.now(); cut && r.Resource == "configmaps" && (r.Verb == "list" || r.Verb == "watch") {
				return gate.FailWith(apierrors.NewServiceUnavailable("cut"))
			}
			return gate.Verdict{}
		},
		OnFrame: func(ctx context.Context, r *gate.Request, _ gate.Frame) gate.Verdict {
			lag, cut := w.now()
			if r.Resource == "configmaps" && cut {
				return gate.Verdict{Action: gate.Close}
			}
			if r.Resource == "configmaps" {
				select {
				case <-time.After(lag):
				case <-ctx.Done():
				}
			}
			return gate.Verdict{}
		},
	}
}

// bothClients runs test with controller-runtime's client and with ours. controller-runtime's has its own
// read-your-own-writes if o asks for it.
func bothClients(t *testing.T, o client.CacheOptions, test func(w *world, c client.Client, sky *weather)) {
	t.Helper()
	sky := &weather{}
	bothCaches(t, cache.Options{}, sky.gate(), func(w *world) {
		sky.set(0, false)
		o.Reader = w.Cache
		c, err := w.newClient()(w.api.RESTConfig(), client.Options{Cache: &o})
		w.must(err)
		w.start()
		w.must(c.List(w.ctx, &corev1.ConfigMapList{}))
		synctest.Wait()
		test(w, c, sky)
	}, namespace("a"))
}

// outcome is the result of a read, and how long it took.
type outcome struct {
	err  error
	took time.Duration
}

func (w *world) within(deadline time.Duration, read func(ctx context.Context) error) outcome {
	ctx, cancel := context.WithTimeout(w.ctx, deadline)
	defer cancel()
	begin := time.Now()
	err := read(ctx)
	return outcome{err, time.Since(begin)}
}

// changed is the message for a fault that controller-runtime no longer has: docs/swap-in.md mentions the fault.
const changed = "controller-runtime behaves better than docs/swap-in.md says"

// TestReadYourWritesCornerCases compares ours with the cases in which controller-runtime's guarantee does not hold, or
// blocks for ever.
func TestReadYourWritesCornerCases(t *testing.T) {
	const deadline = time.Hour
	theirs := client.CacheOptions{EnableReadYourWritesConsistency: new(true)}
	unstructuredToo := client.CacheOptions{EnableReadYourWritesConsistency: new(true), Unstructured: true}
	key := client.ObjectKey{Namespace: "a", Name: "x"}
	get := func(c client.Client) func(ctx context.Context) error {
		return func(ctx context.Context) error { return c.Get(ctx, key, &corev1.ConfigMap{}) }
	}
	list := func(c client.Client) func(ctx context.Context) error {
		return func(ctx context.Context) error { return c.List(ctx, &corev1.ConfigMapList{}) }
	}
	// relist opens the sky, with a server that has forgotten what happened in the gap.
	relist := func(w *world, sky *weather) {
		synctest.Wait() // Until the watches have been cut.
		w.must(w.api.Compact(w.ctx))
		sky.set(0, false)
		time.Sleep(10 * time.Minute)
		synctest.Wait()
	}

	t.Run("deleted by another in a gap", func(t *testing.T) {
		bothClients(t, theirs, func(w *world, c client.Client, sky *weather) {
			sky.set(0, true)
			w.must(c.Create(w.ctx, configMap("a", "x", nil)))
			w.must(w.direct.Delete(w.ctx, configMap("a", "x", nil)))
			relist(w, sky)
			got, all := w.within(deadline, get(c)), w.within(deadline, list(c))
			if w.ours() && (!apierrors.IsNotFound(got.err) || got.took != 0 || all.err != nil || all.took != 0) {
				w.t.Errorf("get: %v after %v, list: %v after %v", got.err, got.took, all.err, all.took)
			}
			if !w.ours() && (got.took < deadline || all.took < deadline) {
				w.t.Errorf("%s: get after %v, list after %v", changed, got.took, all.took)
			}
		})
	})
	t.Run("created and deleted in a gap", func(t *testing.T) {
		bothClients(t, theirs, func(w *world, c client.Client, sky *weather) {
			sky.set(0, true)
			m := configMap("a", "x", nil)
			w.must(c.Create(w.ctx, m))
			w.must(c.Delete(w.ctx, m))
			relist(w, sky)
			w.must(c.Create(w.ctx, configMap("a", "later", nil)))
			synctest.Wait()
			all := w.within(deadline, list(c))
			if w.ours() && (all.err != nil || all.took != 0) {
				w.t.Errorf("list: %v after %v", all.err, all.took)
			}
			if !w.ours() && all.took < deadline {
				w.t.Errorf("%s: list after %v", changed, all.took)
			}
		})
	})
	t.Run("unstructured", func(t *testing.T) {
		bothClients(t, unstructuredToo, func(w *world, c client.Client, sky *weather) {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
			all := &unstructured.UnstructuredList{}
			all.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMapList"})
			w.must(c.List(w.ctx, all))
			sky.set(time.Minute, false)
			u.SetNamespace("a")
			u.SetName("x")
			w.must(c.Create(w.ctx, u.DeepCopy()))
			got := w.within(deadline, func(ctx context.Context) error { return c.Get(ctx, key, u) })
			if w.ours() && (got.err != nil || got.took != 0) {
				w.t.Errorf("get: %v after %v", got.err, got.took)
			}
			if !w.ours() && !apierrors.IsNotFound(got.err) {
				w.t.Errorf("%s: %v", changed, got.err)
			}
		})
	})
	t.Run("deletion by name behind a lagging cache", func(t *testing.T) {
		bothClients(t, theirs, func(w *world, c client.Client, sky *weather) {
			sky.set(time.Minute, false)
			w.must(w.direct.Create(w.ctx, configMap("a", "x", nil)))
			gone := w.within(deadline,
				func(ctx context.Context) error { return c.Delete(ctx, configMap("a", "x", nil)) })
			err := w.direct.Get(w.ctx, key, &corev1.ConfigMap{})
			if w.ours() && (gone.err != nil || !apierrors.IsNotFound(err)) {
				w.t.Errorf("delete: %v, then on the server: %v", gone.err, err)
			}
			if !w.ours() && (!apierrors.IsNotFound(gone.err) || err != nil) {
				w.t.Errorf("%s: delete: %v, then on the server: %v", changed, gone.err, err)
			}
		})
	})
}

// lag waits until a cache without a guarantee shows what was written.
func (w *world) lag() {
	if !w.ours() {
		time.Sleep(5 * time.Second)
		synctest.Wait()
	}
}

// TestWrites sends each write with the options of controller-runtime's client, and reads the result.
func TestWrites(t *testing.T) {
	bothClients(t, client.CacheOptions{}, func(w *world, c client.Client, sky *weather) {
		sky.set(time.Second, false)
		read := func(name string) *corev1.ConfigMap {
			w.t.Helper()
			w.lag()
			var m corev1.ConfigMap
			w.must(c.Get(w.ctx, client.ObjectKey{Namespace: "a", Name: name}, &m))
			return &m
		}
		m := configMap("a", "x", map[string]string{"app": "web"})
		w.must(c.Create(w.ctx, m, client.FieldOwner("me")))
		if got := read("x"); !w.lean() && got.ManagedFields[0].Manager != "me" ||
			m.ResourceVersion != got.ResourceVersion {
			w.t.Errorf("created: %+v", got)
		}
		if err := c.Create(w.ctx, configMap("a", "dry", nil), client.DryRunAll); err != nil {
			w.t.Error(err)
		}
		w.lag()
		if err := c.Get(w.ctx, client.ObjectKey{Namespace: "a", Name: "dry"},
			m.DeepCopy()); !apierrors.IsNotFound(err) {
			w.t.Errorf("dry run: %v", err)
		}
		m.Data["k"] = "updated"
		w.must(c.Update(w.ctx, m))
		if got := read("x"); got.Data["k"] != "updated" {
			w.t.Errorf("updated: %v", got.Data)
		}
		base := m.DeepCopy()
		m.Data["k"] = "patched"
		w.must(c.Patch(w.ctx, m, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})))
		if got := read("x"); got.Data["k"] != "patched" {
			w.t.Errorf("patched: %v", got.Data)
		}
		if err := c.Patch(w.ctx, base.DeepCopy(),
			client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})); !apierrors.IsConflict(err) {
			w.t.Errorf("patch of an old state: %v", err)
		}
		w.must(
			c.Patch(w.ctx, m,
				client.RawPatch(types.JSONPatchType, []byte(`[{"op":"add","path":"/data/j","value":"json"}]`))),
		)
		if got := read("x"); got.Data["j"] != "json" {
			w.t.Errorf("JSON patch: %v", got.Data)
		}
		w.must(
			c.Apply(w.ctx, corev1apply.ConfigMap("x", "a").WithData(map[string]string{"k": "applied"}),
				client.FieldOwner("applier"), client.ForceOwnership),
		)
		if got := read("x"); got.Data["k"] != "applied" {
			w.t.Errorf("applied: %v", got.Data)
		}
		if err := c.Apply(w.ctx, corev1apply.ConfigMap("x", "a").WithData(map[string]string{"k": "other"}),
			client.FieldOwner("another")); !apierrors.IsConflict(err) {
			w.t.Errorf("apply against another owner: %v", err)
		}
		ns := &corev1.Namespace{}
		w.must(c.Get(w.ctx, client.ObjectKey{Name: "a"}, ns))
		ns.Status.Conditions = []corev1.NamespaceCondition{{Type: "Tested", Status: corev1.ConditionTrue}}
		w.must(c.Status().Update(w.ctx, ns))
		w.lag()
		w.must(c.Get(w.ctx, client.ObjectKey{Name: "a"}, ns))
		if len(ns.Status.Conditions) != 1 {
			w.t.Errorf("status: %+v", ns.Status)
		}
		before := ns.DeepCopy()
		ns.Status.Conditions[0].Status = corev1.ConditionFalse
		w.must(c.Status().Patch(w.ctx, ns, client.MergeFrom(before)))
		wrong := types.UID("another")
		if err := c.Delete(w.ctx, m, client.Preconditions{UID: &wrong}); !apierrors.IsConflict(err) {
			w.t.Errorf("delete of another object: %v", err)
		}
		w.must(c.Delete(w.ctx, m, client.PropagationPolicy(metav1.DeletePropagationBackground)))
		w.lag()
		if err := c.Get(w.ctx, client.ObjectKeyFromObject(m), m.DeepCopy()); !apierrors.IsNotFound(err) {
			w.t.Errorf("deleted: %v", err)
		}
		w.must(c.Create(w.ctx, configMap("a", "one", map[string]string{"app": "web"})))
		w.must(c.Create(w.ctx, configMap("a", "two", nil)))
		w.must(c.DeleteAllOf(w.ctx, &corev1.ConfigMap{}, client.InNamespace("a"), client.MatchingLabels{"app": "web"}))
		w.lag()
		var left corev1.ConfigMapList
		w.must(c.List(w.ctx, &left, client.InNamespace("a")))
		if len(left.Items) != 1 || left.Items[0].Name != "two" || left.Continue != "continue-not-supported" {
			w.t.Errorf("left: %v", left.Items)
		}
	})
}

// TestUncachedReads: reads that must not come from the cache go to the server.
func TestUncachedReads(t *testing.T) {
	o := client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}
	bothClients(t, o, func(w *world, c client.Client, _ *weather) {
		requests := func(read func() error) int {
			w.t.Helper()
			w.api.Audit().Reset()
			w.must(read())
			n := 0
			for _, e := range w.api.Audit().Entries(nil) {
				if e.Verb == "list" {
					n++
				}
			}
			return n
		}
		u := &unstructured.UnstructuredList{}
		u.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMapList"})
		for what, n := range map[string]int{
			"cached":       requests(func() error { return c.List(w.ctx, &corev1.ConfigMapList{}) }),
			"disabled":     requests(func() error { return c.List(w.ctx, &corev1.SecretList{}) }) - 1,
			"unstructured": requests(func() error { return c.List(w.ctx, u) }) - 1,
		} {
			if n != 0 {
				w.t.Errorf("%s: %d requests more than expected", what, n)
			}
		}
	})
}

// TestSeparateClients: a client sends its requests with its own HTTP client and configuration, not the cache's. Clients
// of one cache see each other's writes.
func TestSeparateClients(t *testing.T) {
	sky := &weather{}
	bothCaches(t, cache.Options{}, sky.gate(), func(w *world) {
		sky.set(0, false)
		sent := &counter{RoundTripper: w.api.RESTConfig().Transport}
		nowhere := &rest.Config{Host: w.api.RESTConfig().Host, Transport: &http.Transport{DisableKeepAlives: true}}
		o := client.Options{
			HTTPClient: &http.Client{Transport: sent}, Scheme: clientscheme.Scheme,
			Mapper: mapperOf(w), Cache: &client.CacheOptions{Reader: w.Cache},
		}
		c, err := w.newClient()(nowhere, o)
		w.must(err)
		other, err := w.newClient()(w.api.RESTConfigFor(auth.User{Name: "jane", Groups: []string{"system:masters"}}),
			client.Options{Cache: o.Cache})
		w.must(err)
		w.start()
		w.must(c.List(w.ctx, &corev1.ConfigMapList{}))
		sky.set(time.Second, false)
		w.must(c.Create(w.ctx, configMap("a", "x", nil)))
		w.must(other.Create(w.ctx, configMap("a", "y", nil)))
		w.must(c.Status().Update(w.ctx, namespace("a")))
		w.must(
			c.Get(w.ctx, client.ObjectKey{Name: "n"},
				&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Node"}}),
		)
		if n := sent.count(func(*http.Request) bool { return true }); n != 3 {
			w.t.Errorf("%d requests by the HTTP client, want three", n)
		}
		for _, e := range w.api.Audit().Writes() {
			if (e.User == "jane") != (e.Name == "y") {
				w.t.Errorf("%s wrote %s", e.User, e.Name)
			}
		}
		w.lag()
		for _, name := range []string{"x", "y"} {
			w.must(c.Get(w.ctx, client.ObjectKey{Namespace: "a", Name: name}, &corev1.ConfigMap{}))
			w.must(other.Get(w.ctx, client.ObjectKey{Namespace: "a", Name: name}, &corev1.ConfigMap{}))
		}
	}, namespace("a"), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
}

// mapperOf knows what the tests need.
func mapperOf(w *world) meta.RESTMapper {
	w.t.Helper()
	c, err := rest.HTTPClientFor(w.api.RESTConfig())
	w.must(err)
	mapper, err := apiutil.NewDynamicRESTMapper(w.api.RESTConfig(), c)
	w.must(err)
	return mapper
}

// TestDefaultsOfWrites: writes use the defaults of the client's options.
func TestDefaultsOfWrites(t *testing.T) {
	bothCaches(t, cache.Options{}, nil, func(w *world) {
		newClient := w.newClient()
		c, err := newClient(w.api.RESTConfig(),
			client.Options{
				Cache: &client.CacheOptions{Reader: w.Cache}, FieldOwner: "owner",
				FieldValidation: "Strict", Log: logr.Discard(),
			})
		w.must(err)
		w.start()
		m := configMap("a", "x", nil)
		w.must(c.Create(w.ctx, m))
		if m.ManagedFields[0].Manager != "owner" {
			w.t.Errorf("owned by %s", m.ManagedFields[0].Manager)
		}
		dry, err := newClient(w.api.RESTConfig(),
			client.Options{Cache: &client.CacheOptions{Reader: w.Cache}, DryRun: new(true)})
		w.must(err)
		w.must(dry.Create(w.ctx, configMap("a", "dry", nil)))
		synctest.Wait()
		w.want("stored", w.names(client.InNamespace("a")), "a/x")
		if c.Scheme() == nil || c.RESTMapper() == nil {
			w.t.Error("no scheme or mapper")
		}
		if namespaced, err := c.IsObjectNamespaced(m); err != nil || !namespaced {
			w.t.Errorf("namespaced: %v, %v", namespaced, err)
		}
	}, namespace("a"))
}
