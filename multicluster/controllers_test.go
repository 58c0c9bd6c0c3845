package multicluster_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/builder"
	"github.com/flyball-dev/flyball/multicluster"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
	"github.com/flyball-dev/flyball/reconcile/predicate"
	"github.com/flyball-dev/flyball/workqueue"
)

var deleteNow = metav1.DeleteOptions{}

func keyOf(name string) client.ObjectKey { return client.ObjectKey{Namespace: "default", Name: name} }

// named returns a predicate that passes the events of objects of one name.
func named(name string) builder.Predicate {
	return predicate.Matching(func(o informer.Object) bool { return o.GetName() == name })
}

// A busy cluster does not delay another one's single request, and occupies no more workers than it may.
func TestBusyClusterStarvesNoOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, multicluster.Options{ReleaseAfter: -1}, manager.Options{})
		var busy, most atomic.Int32
		r := &recorder{then: func(_ context.Context, r multicluster.Request) (reconcile.Result, error) {
			if r.Cluster == "busy" {
				if n := busy.Add(1); n > most.Load() {
					most.Store(n)
				}
				defer busy.Add(-1)
			}
			time.Sleep(100 * time.Millisecond)
			return reconcile.Result{}, nil
		}}
		b := multicluster.ControllerManagedBy(w.Manager).For(&corev1.ConfigMap{}).WithOptions(
			reconcile.Options[multicluster.Request]{Workers: 4},
		)
		if err := b.Complete(r); err != nil {
			t.Fatal(err)
		}
		w.start(t)
		busySite, calmSite := newSite(t), newSite(t)
		for i := range 120 {
			busySite.create(t, fmt.Sprint("busy-", i))
		}
		w.join(t, "busy", busySite)
		w.join(t, "calm", calmSite)
		time.Sleep(time.Second)
		r.take()
		calmSite.create(t, "single")
		time.Sleep(99 * time.Millisecond)
		if got := r.take(); !slices.Contains(got, "cluster://calm/default/single") {
			t.Errorf("the single request was not begun at once; %d others were", len(got))
		}
		time.Sleep(time.Minute)
		if most.Load() != 2 {
			t.Errorf("the busy cluster kept %d workers of four, want two", most.Load())
		}
	})
}

// A controller that is built later watches the clusters that are there, and one that is removed releases them.
func TestControllersComeAndGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, multicluster.Options{}, manager.Options{})
		w.start(t)
		s := newSite(t)
		s.create(t, "x")
		w.join(t, "eu", s)
		w.wantStates(t, "without controllers", "eu Live")
		for round := range 3 {
			r := &recorder{}
			w.complete(t, r)
			r.want(t, fmt.Sprint("round ", round), "cluster://eu/default/x")
			if err := w.local.Remove(t.Context(), "configmap"); err != nil {
				t.Fatal(err)
			}
			c, err := w.GetCluster(t.Context(), "eu")
			if err != nil {
				t.Fatal(err)
			}
			if n := len(c.Informers().Health()); n != 0 {
				t.Errorf("%d informers are left", n)
			}
		}
	})
}

// A leader that loses its lease follows, with warm caches of all clusters, and can lead again.
func TestControllersWorkInFurtherTenures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, multicluster.Options{}, manager.Options{})
		s := newSite(t)
		s.create(t, "x")
		r := &recorder{}
		c, err := multicluster.ControllerManagedBy(w.Manager).For(&corev1.ConfigMap{}).Build(r)
		if err != nil {
			t.Fatal(err)
		}
		if !c.NeedLeaderElection() {
			t.Error("it does not wait for the leadership")
		}
		w.start(t)
		w.join(t, "eu", s)
		synctest.Wait()
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- c.Run(ctx) }()
		r.want(t, "the first tenure", "cluster://eu/default/x")
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := c.Run(t.Context()); !errors.Is(err, reconcile.ErrStopped) {
			t.Errorf("run again: %v", err)
		}
		lists := len(s.log.Entries(func(e auditEntry) bool { return e.Verb == "list" }))
		fresh, err := c.Rebuild()
		if err != nil {
			t.Fatal(err)
		}
		ctx, stop = context.WithCancel(t.Context())
		go func() { done <- fresh.Run(ctx) }()
		r.want(t, "the second tenure", "cluster://eu/default/x")
		if n := len(s.log.Entries(func(e auditEntry) bool { return e.Verb == "list" })); n != lists {
			t.Errorf("%d lists more: the caches were not warm", n-lists)
		}
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		fresh.(*multicluster.Controller).Release()
		if _, err := fresh.(*multicluster.Controller).Rebuild(); err == nil {
			t.Error("rebuilt after its release")
		}
	})
}

// Controllers start and stop watching a cluster when its labels change.
func TestClusterFilterFollowsLabels(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, multicluster.Options{}, manager.Options{})
		prod, all := &recorder{}, &recorder{}
		b := multicluster.ControllerManagedBy(w.Manager).For(&corev1.ConfigMap{}).Named("prod")
		if err := b.WithClusterFilter(multicluster.MatchLabels(map[string]string{"env": "prod"})).Complete(
			prod,
		); err != nil {
			t.Fatal(err)
		}
		w.complete(t, all)
		w.start(t)
		s := newSite(t)
		s.create(t, "x")
		const x = "cluster://eu/default/x"
		w.joinAs(t, "eu", "1", s, nil)
		prod.want(t, "without the label")
		all.want(t, "without the label", x)
		w.joinAs(t, "eu", "1", s, map[string]string{"env": "prod"})
		prod.want(t, "labelled", x)
		w.joinAs(t, "eu", "1", s, map[string]string{"env": "test"})
		synctest.Wait()
		s.create(t, "y")
		prod.want(t, "the label is gone")
		all.want(t, "the other controller goes on", "cluster://eu/default/y")
		w.joinAs(t, "eu", "1", s, map[string]string{"env": "prod"})
		prod.want(t, "labelled again", x, "cluster://eu/default/y")
		if n := len(w.logs.with("Cluster changed state")); n != 2 {
			t.Errorf("%d changes of state, want those to Joining and Live", n)
		}
	})
}

// Owners are looked up in the cluster of the owned object, whether or not they are namespaced there.
func TestOwnsAndWatches(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, multicluster.Options{}, manager.Options{})
		r, nodes := &recorder{}, &recorder{}
		elsewhere := handler.EnqueueMapped(func(ctx context.Context, o informer.Object) []multicluster.Request {
			return []multicluster.Request{
				multicluster.RequestFor("b", "mapped", o.GetName()),
				multicluster.RequestFor("nowhere", "mapped", o.GetName()),
			}
		})
		b := multicluster.ControllerManagedBy(w.Manager).For(&appsv1.Deployment{}).Owns(&corev1.ConfigMap{},
			builder.OnlyMetadata).
			WatchesAcross(&corev1.Secret{}, elsewhere).WatchesLocal(&corev1.ConfigMap{}, elsewhere,
			builder.WithPredicates(named("declared")))
		if err := b.Complete(r); err != nil {
			t.Fatal(err)
		}
		if err := multicluster.ControllerManagedBy(w.Manager).For(&corev1.Node{}).Owns(&corev1.ConfigMap{}).Complete(
			nodes,
		); err != nil {
			t.Fatal(err)
		}
		w.start(t)
		sites := map[string]*site{"a": newSite(t), "b": newSite(t)}
		for name, s := range sites {
			w.join(t, name, s)
		}
		synctest.Wait()
		yes := true
		owned := configMap("child")
		owned.OwnerReferences = []metav1.OwnerReference{
			{APIVersion: "apps/v1", Kind: "Deployment", Name: "web", UID: "1", Controller: &yes},
		}
		if _, err := sites["a"].client(t).CoreV1().ConfigMaps("default").Create(t.Context(), owned,
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		r.want(t, "a child", "cluster://a/default/web")
		owned.OwnerReferences[0].APIVersion, owned.OwnerReferences[0].Kind, owned.Name = "v1", "Node", "of-node"
		if _, err := sites["b"].client(t).CoreV1().ConfigMaps("default").Create(t.Context(), owned,
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		nodes.want(t, "a node's child", "cluster://b//web")
		r.want(t, "a node's child")
		secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "s"}}
		if _, err := sites["a"].client(t).CoreV1().Secrets("default").Create(t.Context(), secret,
			metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		r.want(t, "mapped to another cluster", "cluster://b/mapped/s")
		w.localSite.create(t, "declared", "other")
		r.want(t, "declared in the local cluster", "cluster://b/mapped/declared")
	})
}

// The local cluster is engaged if the fleet or the controller asks for it.
func TestEngageLocal(t *testing.T) {
	for _, c := range []struct {
		fleet   bool
		builder func(b *multicluster.Builder) *multicluster.Builder
		want    []string
	}{
		{false, func(b *multicluster.Builder) *multicluster.Builder { return b }, nil},
		{true, func(b *multicluster.Builder) *multicluster.Builder { return b }, []string{"default/x"}},
		{
			false, func(b *multicluster.Builder) *multicluster.Builder { return b.EngageLocal(true) },
			[]string{"default/x"},
		},
		{true, func(b *multicluster.Builder) *multicluster.Builder { return b.EngageLocal(false) }, nil},
	} {
		synctest.Test(t, func(t *testing.T) {
			w := newWorld(t, multicluster.Options{EngageLocal: c.fleet}, manager.Options{})
			r := &recorder{}
			if err := c.builder(multicluster.ControllerManagedBy(w.Manager).For(&corev1.ConfigMap{})).Complete(
				r,
			); err != nil {
				t.Fatal(err)
			}
			w.start(t)
			w.localSite.create(t, "x")
			r.want(t, fmt.Sprint(c.fleet), c.want...)
		})
	}
}

// One reconciler works on one cluster and on many: a reconciler for one cluster on a fleet, and the other way round.
func TestTheSameReconcilerOnOneAndMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, multicluster.Options{}, manager.Options{})
		var made atomic.Int32
		w.complete(t, multicluster.PerCluster(func(c *multicluster.Cluster,
		) (reconcile.Reconciler[reconcile.Request], error) {
			if made.Add(1) == 1 {
				return nil, errors.New("not yet")
			}
			return &marker{c}, nil
		}))
		many := reconcile.Func[multicluster.Request](func(ctx context.Context,
			r multicluster.Request,
		) (reconcile.Result, error) {
			c, err := clusterOf(ctx)
			if err != nil {
				return reconcile.Result{}, err
			}
			return (&marker{c}).Reconcile(ctx, r.Request)
		})
		one := builder.ControllerManagedBy(w.local).For(&corev1.ConfigMap{}).Named("one")
		if err := one.Complete(multicluster.ForSingleCluster(multicluster.ClusterOf(w.local), many)); err != nil {
			t.Fatal(err)
		}
		w.start(t)
		sites := []*site{newSite(t), newSite(t), w.localSite}
		w.join(t, "a", sites[0])
		w.join(t, "b", sites[1])
		synctest.Wait()
		for _, s := range sites {
			s.create(t, "x", "y")
		}
		time.Sleep(time.Second)
		for i, s := range sites {
			for _, object := range []string{"x", "y"} {
				cm, err := s.client(t).CoreV1().ConfigMaps("default").Get(t.Context(), object, metav1.GetOptions{})
				if err != nil || cm.Labels["marked"] != "yes" {
					t.Errorf("cluster %d: %s has labels %v, %v", i, object, cm.Labels, err)
				}
			}
		}
		if made.Load() != 3 {
			t.Errorf("%d reconcilers were made for two clusters, one of them twice", made.Load())
		}
	})
}

// marker is a reconciler for one cluster.
type marker struct{ client.Client }

func (m *marker) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	var cm corev1.ConfigMap
	if err := m.Get(ctx, r.NamespacedName, &cm); err != nil || cm.Labels != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	cm.Labels = map[string]string{"marked": "yes"}
	return reconcile.Result{}, m.Update(ctx, &cm)
}

// strange is a type that no scheme knows.
type strange struct{ corev1.ConfigMap }

func TestMisuseIsFoundWhenItIsBuilt(t *testing.T) {
	w := newWorld(t, multicluster.Options{}, manager.Options{})
	r := &recorder{}
	begin := func() *multicluster.Builder { return multicluster.ControllerManagedBy(w.Manager) }
	maps := &corev1.ConfigMap{}
	type options = reconcile.Options[multicluster.Request]
	for _, c := range []struct {
		says string
		b    *multicluster.Builder
	}{
		{"the fleet is nil; make one with multicluster.New", multicluster.ControllerManagedBy(nil).For(maps)},
		{"nothing would ever be reconciled: call For(&Kind{})", begin().Named("x")},
		{"For was called twice", begin().For(maps).For(&corev1.Pod{})},
		{"For: the object is nil", begin().For((*corev1.Pod)(nil))},
		{"Owns without For", begin().Named("x").Owns(maps)},
		{
			"a controller without For has no name: call Named",
			begin().Watches(maps, handler.EnqueueObject[informer.Object]()),
		},
		{"call AddToScheme of its package", begin().For(&strange{})},
		{"call SetGroupVersionKind on it", begin().For(&unstructured.Unstructured{})},
		{
			"Watches(*v1.ConfigMap): the handler has no function",
			begin().For(maps).Watches(maps, builder.HandlerFuncs{}),
		},
		{
			"WatchesLocal(*v1.ConfigMap): the handler has no function",
			begin().For(maps).WatchesLocal(maps, multicluster.Handler{}),
		},
		{"MatchEveryOwner is for Owns", begin().For(maps, builder.MatchEveryOwner)},
		{"WithEventFilter: the predicate is nil", begin().For(maps).WithEventFilter(nil)},
		{"WithClusterFilter: the filter is nil", begin().For(maps).WithClusterFilter(nil)},
		{"WithOptions was called twice", begin().For(maps).WithOptions(options{}).WithOptions(options{})},
		{"-1 Workers; 0 means 8", begin().For(maps).WithOptions(options{Workers: -1})},
		{"ReleaseAfter from its own Options", begin().For(maps).WithOptions(options{ReleaseAfter: time.Second})},
		{
			"has lanes of clusters",
			begin().For(maps).WithOptions(
				options{Order: workqueue.NewPriorityOrder[multicluster.Request](workqueue.PriorityOptions{})},
			),
		},
		{"Named: the name is empty", begin().For(maps).Named("")},
		{"a runnable of that name exists", begin().For(maps).Named("fleet")},
	} {
		t.Run(c.says, func(t *testing.T) {
			if err := c.b.Complete(r); err == nil || !strings.Contains(err.Error(), c.says) {
				t.Errorf("error %v", err)
			}
		})
	}
	if err := begin().For(maps).Complete(nil); err == nil ||
		!strings.Contains(err.Error(), "configmap: the reconciler is nil") {
		t.Errorf("error %v", err)
	}
	if n := len(w.local.Informers().Health()); n != 0 {
		t.Errorf("%d informers of controllers that failed to build are left", n)
	}
}
