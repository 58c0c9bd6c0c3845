package deployment

import (
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
	"github.com/flyball-dev/flyball/workqueue"
)

// woken is a queue that only takes note, and a cache of these Deployments and ReplicaSets.
type woken struct{ keys []string }

func (w *woken) Add(key reconcile.Request) { w.keys = append(w.keys, key.Name) }
func (w *woken) AddAfter(key reconcile.Request, _ time.Duration) {
	w.keys = append(w.keys, "late "+key.Name)
}

func (w *woken) AddRateLimited(key reconcile.Request) { w.keys = append(w.keys, "limited "+key.Name) }

func (w *woken) AddWith(key reconcile.Request, _ workqueue.AddOptions) { w.Add(key) }

type listed[T informer.Object] struct {
	cacheAt[T]
	index informer.IndexFunc[T]
}

func (c listed[T]) ByIndex(_, value string) ([]T, error) {
	return slices.DeleteFunc(slices.Clone(c.objects), func(o T) bool {
		values, err := c.index(o)
		return err != nil || !slices.Contains(values, value)
	}), nil
}

func (c listed[T]) List(namespace string, _ labels.Selector) []T {
	return slices.DeleteFunc(slices.Clone(c.objects), func(o T) bool { return o.GetNamespace() != namespace })
}

func routerOver(sets []*appsv1.ReplicaSet, deployments ...*appsv1.Deployment) router {
	return newRouter(parts{
		deployments: listed[*appsv1.Deployment]{cacheAt: cacheAt[*appsv1.Deployment]{objects: deployments}},
		sets:        listed[*appsv1.ReplicaSet]{cacheAt: cacheAt[*appsv1.ReplicaSet]{objects: sets}},
	})
}

// named is web under another name, and with another selector.
func named(name string, selector *metav1.LabelSelector) *appsv1.Deployment {
	d := web(1)
	d.Name, d.UID = name, types.UID("uid-of-"+name)
	d.Spec.Selector = selector
	return d
}

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/deployment_controller.go, addReplicaSet,
// updateReplicaSet, deleteReplicaSet, getDeploymentsForReplicaSet and resolveControllerRef
func TestReplicaSetEvents(t *testing.T) {
	d := web(1)
	matching := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}}
	twin := named("twin", matching)
	elsewhere := named("elsewhere", matching)
	elsewhere.Namespace = "other"
	r := routerOver(nil, d, twin, elsewhere, named("nil", nil), named("empty", &metav1.LabelSelector{}),
		named("differs", &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}}),
		named("invalid",
			&metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "?"}}}))

	owned := set(d, 1, "v1", 1)
	orphan := set(d, 1, "v1", 1, func(rs *appsv1.ReplicaSet) { rs.OwnerReferences = nil })
	with := func(rs *appsv1.ReplicaSet, change setChange) *appsv1.ReplicaSet {
		rs = at(rs.DeepCopy(), rs.ResourceVersion+"1")
		change(rs)
		return rs
	}
	going := func(rs *appsv1.ReplicaSet) { now := ago(0); rs.DeletionTimestamp = &now }
	owner := func(change func(*metav1.OwnerReference)) setChange {
		return func(rs *appsv1.ReplicaSet) { change(&rs.OwnerReferences[0]) }
	}
	twins := func(rs *appsv1.ReplicaSet) {
		rs.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(twin, kind)}
	}
	same := func(*appsv1.ReplicaSet) {}
	unlabelled := func(rs *appsv1.ReplicaSet) { rs.Labels = nil }
	relabelled := func(rs *appsv1.ReplicaSet) { rs.Labels = map[string]string{"app": "web", "b": "c"} }
	released := func(rs *appsv1.ReplicaSet) { rs.OwnerReferences = nil }

	type step func(h handler.EventHandler[*appsv1.ReplicaSet, reconcile.Request], q enqueuer)
	add := func(rs *appsv1.ReplicaSet) step {
		return func(h handler.EventHandler[*appsv1.ReplicaSet, reconcile.Request], q enqueuer) {
			h.OnAdd(t.Context(), rs, false, q)
		}
	}
	update := func(old *appsv1.ReplicaSet, change setChange) step {
		return func(h handler.EventHandler[*appsv1.ReplicaSet, reconcile.Request], q enqueuer) {
			h.OnUpdate(t.Context(), old, with(old, change), q)
		}
	}
	remove := func(rs *appsv1.ReplicaSet) step {
		return func(h handler.EventHandler[*appsv1.ReplicaSet, reconcile.Request], q enqueuer) {
			h.OnDelete(t.Context(), informer.Deleted[*appsv1.ReplicaSet]{Object: rs}, q)
		}
	}
	for _, tc := range []struct {
		name string
		step step
		want []string
	}{
		{"added: its owner", add(owned), []string{"web"}},
		{"added on its way out: its owner", add(with(owned, going)), []string{"web"}},
		{"an orphan added: all that match", add(orphan), []string{"web", "twin"}},
		{"an orphan on its way out: nobody", add(with(orphan, going)), nil},
		{"an orphan without labels: nobody", add(with(orphan, unlabelled)), nil},
		{"owned by another kind", add(with(owned, owner(func(o *metav1.OwnerReference) { o.Kind = "Rollout" }))), nil},
		{
			"owned by an earlier one of that name",
			add(with(owned, owner(func(o *metav1.OwnerReference) { o.UID = "x" }))), nil,
		},
		{
			"owned by one that is not there", add(with(owned, owner(func(o *metav1.OwnerReference) { o.Name = "x" }))),
			nil,
		},
		{"updated: its owner", update(owned, same), []string{"web"}},
		{"resync: nobody", func(h handler.EventHandler[*appsv1.ReplicaSet, reconcile.Request], q enqueuer) {
			h.OnUpdate(t.Context(), owned, owned, q)
		}, nil},
		{"given to another: both", update(owned, twins), []string{"web", "twin"}},
		{"released: its old owner, then all that match", update(owned, released), []string{"web", "web", "twin"}},
		{"an orphan relabelled: all that match", update(orphan, relabelled), []string{"web", "twin"}},
		{"an orphan otherwise updated: nobody", update(orphan, same), nil},
		{"deleted: its owner", remove(owned), []string{"web"}},
		{"an orphan deleted: nobody", remove(orphan), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var w woken
			tc.step(r.replicaSetEvents(), &w)
			equal(t, "woken", w.keys, tc.want)
		})
	}
}

// Since v1.37 every deletion of a pod of a Recreate Deployment counts; before, only that of the last one.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/deployment_controller.go, deletePod and
// getDeploymentForPod
func TestPodEvents(t *testing.T) {
	d := web(1, recreate)
	rs := set(d, 1, "v1", 1)
	orphan := set(d, 2, "orphan", 1, func(rs *appsv1.ReplicaSet) { rs.OwnerReferences = nil })
	pod := func(change func(*metav1.OwnerReference), owner *appsv1.ReplicaSet) *corev1.Pod {
		ref := *metav1.NewControllerRef(owner, appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
		change(&ref)
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "default", Name: "p",
				OwnerReferences: []metav1.OwnerReference{ref},
			},
		}
	}
	same := func(*metav1.OwnerReference) {}
	r := routerOver([]*appsv1.ReplicaSet{rs, orphan}, d)
	for _, tc := range []struct {
		name string
		r    router
		pod  *corev1.Pod
		want []string
	}{
		{"of a recreated one", r, pod(same, rs), []string{"web"}},
		{"of a rolling one", routerOver([]*appsv1.ReplicaSet{rs}, web(1)), pod(same, rs), nil},
		{"bare", r, &corev1.Pod{}, nil},
		{"of another kind", r, pod(func(o *metav1.OwnerReference) { o.Kind = "StatefulSet" }, rs), nil},
		{"of an earlier replica set", r, pod(func(o *metav1.OwnerReference) { o.UID = "x" }, rs), nil},
		{"of one that is gone", r, pod(func(o *metav1.OwnerReference) { o.Name = "x" }, rs), nil},
		{"of an orphan", r, pod(same, orphan), nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var w woken
			h := tc.r.podEvents()
			h.OnDelete(t.Context(), informer.Deleted[*corev1.Pod]{Object: tc.pod}, &w)
			equal(t, "woken", w.keys, tc.want)
			if h.OnAdd != nil || h.OnUpdate != nil {
				t.Error("more than deletions are heard")
			}
		})
	}
}
