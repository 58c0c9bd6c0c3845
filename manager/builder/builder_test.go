package builder_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
	"github.com/flyball-dev/flyball/reconcile/predicate"
	"github.com/flyball-dev/flyball/reconcile/source"
)

// requests records the keys that a reconciler was called with.
type requests struct {
	mu   sync.Mutex
	list []string
}

func (r *requests) Reconcile(_ context.Context, key reconcile.Request) (reconcile.Result, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = append(r.list, key.String())
	return reconcile.Result{}, nil
}

// take returns the keys since the last call, sorted.
func (r *requests) take() []string {
	synctest.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	got := r.list
	r.list = nil
	slices.Sort(got)
	return got
}

func (r *requests) want(t *testing.T, what string, want ...string) {
	t.Helper()
	if got := r.take(); !slices.Equal(got, want) {
		t.Errorf("%s: reconciled %q, want %q", what, got, want)
	}
}

func newManager(t *testing.T, g gate.Gate, o manager.Options) *manager.Manager {
	t.Helper()
	server, err := localapi.New(localapi.Options{Gate: g, NoKubernetesService: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	m, err := manager.New(server.RESTConfig(), o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// run runs the manager for the rest of the test.
func run(t *testing.T, m *manager.Manager) {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- m.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error("run:", err)
		}
	})
	synctest.Wait()
}

func ownedBy(apiVersion, kind, name string, controller bool) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: apiVersion, Kind: kind, Name: name, UID: types.UID(name),
		Controller: &controller,
	}
}

func configMap(name string, owners ...metav1.OwnerReference) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name, OwnerReferences: owners}}
}

func create(t *testing.T, m *manager.Manager, cm *corev1.ConfigMap) *corev1.ConfigMap {
	t.Helper()
	if err := m.GetClient().Create(t.Context(), cm); err != nil {
		t.Fatal(err)
	}
	return cm
}

func TestOwnsAsksForTheControllerOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, r := newManager(t, nil, manager.Options{}), &requests{}
		if err := builder.ControllerManagedBy(m).For(&appsv1.Deployment{}).Owns(&corev1.ConfigMap{}).Complete(
			r,
		); err != nil {
			t.Fatal(err)
		}
		run(t, m)
		r.want(t, "at the start")
		cm := create(t, m,
			configMap("a", ownedBy("apps/v1", "Deployment", "web", true),
				ownedBy("apps/v1", "Deployment", "db", false)))
		r.want(t, "create", "default/web")
		cm.Data = map[string]string{"k": "v"}
		if err := m.GetClient().Update(t.Context(), cm); err != nil {
			t.Fatal(err)
		}
		r.want(t, "update", "default/web")
		create(t, m, configMap("b", ownedBy("apps/v1", "StatefulSet", "web", true)))
		create(t, m, configMap("c", ownedBy("extensions/v1beta1", "Deployment", "web", true)))
		create(t, m, configMap("d"))
		r.want(t, "children of others")
	})
}

// The request for a cluster-scoped owner has no namespace, whatever the namespace of the object that it owns.
func TestOwnersWithoutNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, r := newManager(t, nil, manager.Options{}), &requests{}
		b := builder.ControllerManagedBy(m).For(&corev1.Node{}).Owns(&corev1.ConfigMap{}, builder.MatchEveryOwner,
			builder.OnlyMetadata)
		if err := b.Complete(r); err != nil {
			t.Fatal(err)
		}
		run(t, m)
		create(t, m, configMap("a", ownedBy("v1", "Node", "n1", false), ownedBy("v1", "Node", "n2", true)))
		r.want(t, "create", "/n1", "/n2")
	})
}

// The controller waits until the server has answered whether the owners are namespaced, and reports that it waits.
func TestOwnsWaitsForDiscovery(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		blind := true
		g := gate.Funcs{OnRequest: func(_ context.Context, r *gate.Request) gate.Verdict {
			mu.Lock()
			defer mu.Unlock()
			if blind && r.Resource == "" {
				return gate.FailWith(apierrors.NewInternalError(errors.New("no discovery today")))
			}
			return gate.Verdict{}
		}}
		m, r := newManager(t, g, manager.Options{ServerTimeout: -1}), &requests{}
		if err := builder.ControllerManagedBy(m).For(&corev1.Node{}).Owns(&corev1.ConfigMap{}).Complete(r); err != nil {
			t.Fatal(err)
		}
		run(t, m)
		time.Sleep(time.Minute)
		if err := m.Ready(); err == nil || !strings.Contains(err.Error(), "the kind of their owners: ") {
			t.Errorf("readiness %v", err)
		}
		mu.Lock()
		blind = false
		mu.Unlock()
		time.Sleep(time.Minute)
		if err := m.Ready(); err != nil {
			t.Error(err)
		}
		create(t, m, configMap("a", ownedBy("v1", "Node", "n1", true)))
		r.want(t, "create", "/n1")
	})
}

func TestWatchesFiltersAndRepresentations(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, r := newManager(t, nil, manager.Options{}), &requests{}
		maps := &unstructured.Unstructured{}
		maps.SetGroupVersionKind(schema.GroupVersionKind{Version: "v1", Kind: "ConfigMap"})
		toData := handler.EnqueueMapped(func(_ context.Context, obj informer.Object) []reconcile.Request {
			to, _, _ := unstructured.NestedString(obj.(*unstructured.Unstructured).Object, "data", "to")
			return []reconcile.Request{{NamespacedName: types.NamespacedName{Name: to}}}
		})
		notIgnored := predicate.Matching(func(obj informer.Object) bool { return obj.GetLabels()["ignore"] == "" })
		notSmall := predicate.Matching(func(obj informer.Object) bool { return obj.GetName() != "small" })
		queue := make(chan reconcile.Request, 1)
		err := builder.ControllerManagedBy(m).Named("mapper").
			Watches(maps, toData, builder.WithPredicates(notSmall)).
			WatchesMetadata(&corev1.Namespace{}, handler.EnqueueObject[informer.Object]()).
			WatchesRawSource(source.Chan("outside", queue)).
			WithEventFilter(notIgnored).
			WithOptions(reconcile.Options[reconcile.Request]{Workers: 2}).
			Complete(r)
		if err != nil {
			t.Fatal(err)
		}
		run(t, m)
		r.want(t, "at the start", "/default", "/kube-node-lease", "/kube-public", "/kube-system")
		for name, ignore := range map[string]string{"small": "", "other": "", "unseen": "yes"} {
			cm := configMap(name)
			cm.Data, cm.Labels = map[string]string{"to": "for-" + name}, map[string]string{"ignore": ignore}
			create(t, m, cm)
		}
		r.want(t, "config maps", "/for-other")
		queue <- reconcile.Request{NamespacedName: types.NamespacedName{Name: "x"}}
		r.want(t, "raw source", "/x")
	})
}

// Case 47: a cache that never syncs ends the process with the kind's name, and nothing is reconciled before.
func TestCacheSyncTimeoutNamesTheKind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := gate.Funcs{OnRequest: func(_ context.Context, r *gate.Request) gate.Verdict {
			if r.Resource == "pods" {
				return gate.FailWith(apierrors.NewForbidden(corev1.Resource("pods"), "", errors.New("no rule")))
			}
			return gate.Verdict{}
		}}
		m, r := newManager(t, g, manager.Options{}), &requests{}
		err := builder.ControllerManagedBy(m).For(&corev1.ConfigMap{}).Owns(&corev1.Pod{}).CacheSyncTimeout(
			2 * time.Minute,
		).Complete(r)
		if err != nil {
			t.Fatal(err)
		}
		create(t, m, configMap("a"))
		begin := time.Now()
		done := make(chan error, 1)
		go func() { done <- m.Run(t.Context()) }()
		time.Sleep(time.Minute)
		if err := m.Ready(); err == nil || !strings.Contains(err.Error(), "informer pods: cannot list pods") {
			t.Errorf("readiness %v", err)
		}
		err = <-done
		if err == nil || !strings.Contains(err.Error(), "pods did not sync within 2m0s: ") ||
			!strings.Contains(err.Error(), "forbidden") {
			t.Errorf("error %v", err)
		}
		if took := time.Since(begin); took != 2*time.Minute {
			t.Errorf("after %v", took)
		}
		r.want(t, "before all caches were filled")
	})
}

// A controller is removed together with its cache, and can be built again.
func TestBuildAgainAfterRemoval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, r := newManager(t, nil, manager.Options{}), &requests{}
		run(t, m)
		create(t, m, configMap("a"))
		for range 3 {
			if err := builder.ControllerManagedBy(m).For(&corev1.ConfigMap{}).Complete(r); err != nil {
				t.Fatal(err)
			}
			r.want(t, "start", "default/a")
			if err := m.Remove(t.Context(), "configmap"); err != nil {
				t.Fatal(err)
			}
			if n := len(m.Informers().Health()); n != 0 {
				t.Errorf("%d informers are left", n)
			}
		}
	})
}

// Each tenure has a new controller on the same caches.
func TestRebuildKeepsTheCaches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, r := newManager(t, nil, manager.Options{}), &requests{}
		c, err := builder.ControllerManagedBy(m).For(&corev1.ConfigMap{}).NeedLeaderElection(false).Build(r)
		if err != nil {
			t.Fatal(err)
		}
		again, err := c.Rebuild()
		if err != nil || again.(*builder.Controller).NeedLeaderElection() || again == manager.Runnable(c) {
			t.Errorf("rebuilt as %v, %v", again, err)
		}
		if n := len(m.Informers().Health()); n != 1 {
			t.Errorf("%d informers, want one for both", n)
		}
		again.(*builder.Controller).Release()
		if _, err := c.Rebuild(); err == nil {
			t.Error("rebuilt on informers that were released")
		}
	})
}

// TestCachesOfTheManager checks that Options.Caches applies to controllers and to the client, which share a cache, and
// that a call of the builder overrides it.
func TestCachesOfTheManager(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		trim := func(obj informer.Object) (informer.Object, error) {
			obj.(*corev1.ConfigMap).Data = nil
			return obj, nil
		}
		o := manager.Options{Caches: []client.CacheOf{{Object: &corev1.ConfigMap{}, Informer: informer.InformerOptions{
			Namespaces: []string{"default"}, LabelSelector: "mine=yes", Transform: trim, TransformName: "no data",
		}}}}
		m, r, others := newManager(t, nil, o), &requests{}, &requests{}
		if err := builder.ControllerManagedBy(m).For(&corev1.ConfigMap{}).Complete(r); err != nil {
			t.Fatal(err)
		}
		err := builder.ControllerManagedBy(m).Named("others").For(&corev1.ConfigMap{},
			builder.WatchOptions{LabelSelector: "mine=no"}).Complete(others)
		if err != nil {
			t.Fatal(err)
		}
		run(t, m)
		for name, mine := range map[string]string{"a": "yes", "b": "no"} {
			cm := configMap(name)
			cm.Labels, cm.Data = map[string]string{"mine": mine}, map[string]string{"big": "data"}
			create(t, m, cm)
		}
		r.want(t, "the manager's caches", "default/a")
		others.want(t, "a call's own", "default/b")
		var read corev1.ConfigMap
		if err := m.GetClient().Get(t.Context(), client.ObjectKey{Namespace: "default", Name: "a"},
			&read); err != nil || read.Data != nil {
			t.Errorf("read %v, %v", read.Data, err)
		}
		if n := len(m.Informers().Health()); n != 2 {
			t.Errorf("%d informers, want one for controller and client, and one for the call", n)
		}
	})
	for says, caches := range map[string][]client.CacheOf{
		"Options.Caches[0]: the object is nil":             {{}},
		"Options.Caches[1]: /v1, Kind=Pod is listed twice": {{Object: &corev1.Pod{}}, {Object: &corev1.Pod{}}},
		"Options.Caches[0]: ":                              {{Object: &strange{}}},
	} {
		if _, err := manager.New(&rest.Config{Host: "http://api"}, manager.Options{Caches: caches}); err == nil ||
			!strings.Contains(err.Error(), says) {
			t.Errorf("error %v, want %q", err, says)
		}
	}
}

// strange is a type that no scheme knows.
type strange struct{ corev1.ConfigMap }

func (s *strange) DeepCopyObject() runtime.Object { return s }

func TestMisuseIsFoundWhenItIsBuilt(t *testing.T) {
	m := newManager(t, nil, manager.Options{})
	r := &requests{}
	if err := builder.ControllerManagedBy(m).For(&corev1.Secret{}).Complete(r); err != nil {
		t.Fatal(err)
	}
	begin := func() *builder.Builder { return builder.ControllerManagedBy(m) }
	maps := &corev1.ConfigMap{}
	all := handler.EnqueueObject[informer.Object]()
	for _, c := range []struct {
		says string
		b    *builder.Builder
	}{
		{"the manager is nil; make one with manager.New", builder.ControllerManagedBy(nil).For(maps)},
		{"nothing would ever be reconciled: call For(&Kind{})", begin().Named("x")},
		{"For was called twice", begin().For(maps).For(&corev1.Pod{})},
		{"For: the object is nil", begin().For(nil)},
		{"For: the object is nil", begin().For((*corev1.Pod)(nil))},
		{"Owns without For", begin().Named("x").Owns(maps)},
		{"a controller without For has no name: call Named", begin().Watches(maps, all)},
		{"call AddToScheme of its package", begin().For(&strange{})},
		{"call SetGroupVersionKind on it", begin().For(&unstructured.Unstructured{})},
		{
			"the handler has no function; make one with handler.EnqueueMapped",
			begin().For(maps).Watches(maps, builder.HandlerFuncs{}),
		},
		{"MatchEveryOwner is for Owns", begin().For(maps, builder.MatchEveryOwner)},
		{"WatchesRawSource: the source is nil", begin().For(maps).WatchesRawSource(nil)},
		{"WithEventFilter: the predicate is nil", begin().For(maps).WithEventFilter(nil)},
		{
			"WithOptions was called twice",
			begin().For(maps).WithOptions(reconcile.Options[reconcile.Request]{}).WithOptions(
				reconcile.Options[reconcile.Request]{},
			),
		},
		{"-1 Workers; 0 means 1", begin().For(maps).WithOptions(reconcile.Options[reconcile.Request]{Workers: -1})},
		{"Named: the name is empty", begin().For(maps).Named("")},
		{"CacheSyncTimeout -1ns is negative", begin().For(maps).CacheSyncTimeout(-1)},
		{"build controller secret: manager: add secret: a runnable of that name exists", begin().For(&corev1.Secret{})},
	} {
		t.Run(c.says, func(t *testing.T) {
			if err := c.b.Complete(r); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v", err)
			}
		})
	}
	if n := len(m.Informers().Health()); n != 1 {
		t.Errorf("%d informers, want only that of what could be built", n)
	}
	if err := begin().For(maps).Complete(nil); err == nil ||
		!strings.Contains(err.Error(), "configmap: the reconciler is nil") {
		t.Errorf("error %v", err)
	}
}
