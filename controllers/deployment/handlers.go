package deployment

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/controllers/internal/claim"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
)

type enqueuer = reconcile.Enqueuer[reconcile.Request]

// router finds the Deployments that an event concerns, and adds their keys to the queue.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/deployment_controller.go
type router struct {
	deployments claim.Owners[*appsv1.Deployment]
	replicaSets claim.Owners[*appsv1.ReplicaSet]
}

func newRouter(w parts) router {
	return router{
		deployments: claim.Owners[*appsv1.Deployment]{
			Cache: w.deployments, Kind: kind.Kind,
			Selector: func(d *appsv1.Deployment) *metav1.LabelSelector { return d.Spec.Selector },
		},
		replicaSets: claim.Owners[*appsv1.ReplicaSet]{Cache: w.sets, Kind: "ReplicaSet"},
	}
}

// replicaSetEvents enqueues the owner of a ReplicaSet. If it has none, it enqueues every Deployment that may adopt it.
func (r router) replicaSetEvents() handler.EventHandler[*appsv1.ReplicaSet, reconcile.Request] {
	return handler.EventHandler[*appsv1.ReplicaSet, reconcile.Request]{
		OnAdd: func(_ context.Context, rs *appsv1.ReplicaSet, _ bool, q enqueuer) {
			// A ReplicaSet that is being deleted when the controller starts cannot be adopted.
			if !r.enqueueOwner(rs, q) && rs.DeletionTimestamp == nil {
				r.enqueueAdopters(rs, q)
			}
		},
		OnUpdate: func(_ context.Context, old, rs *appsv1.ReplicaSet, q enqueuer) {
			if old.ResourceVersion == rs.ResourceVersion {
				return // a resync
			}
			moved := !equality.Semantic.DeepEqual(metav1.GetControllerOfNoCopy(old), metav1.GetControllerOfNoCopy(rs))
			if moved {
				r.enqueueOwner(old, q)
			}
			if r.enqueueOwner(rs, q) {
				return
			}
			if moved || !equality.Semantic.DeepEqual(old.Labels, rs.Labels) {
				r.enqueueAdopters(rs, q)
			}
		},
		OnDelete: func(_ context.Context, gone informer.Deleted[*appsv1.ReplicaSet], q enqueuer) {
			r.enqueueOwner(gone.Object, q)
		},
	}
}

// podEvents enqueues a Deployment of the strategy Recreate when one of its pods is gone: it may be waiting for that.
func (r router) podEvents() handler.EventHandler[*corev1.Pod, reconcile.Request] {
	return handler.EventHandler[*corev1.Pod, reconcile.Request]{
		OnDelete: func(_ context.Context, gone informer.Deleted[*corev1.Pod], q enqueuer) {
			pod := gone.Object
			rs, ok := r.replicaSets.Resolve(pod.Namespace, metav1.GetControllerOfNoCopy(pod))
			if !ok {
				return
			}
			d, ok := r.deployments.Resolve(rs.Namespace, metav1.GetControllerOfNoCopy(rs))
			if ok && d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
				q.Add(reconcile.RequestFor(d))
			}
		},
	}
}

// enqueueOwner enqueues the Deployment that owns rs. It reports whether rs has an owner at all: the owner may be of
// another kind, or gone.
func (r router) enqueueOwner(rs *appsv1.ReplicaSet, q enqueuer) bool {
	ref := metav1.GetControllerOfNoCopy(rs)
	if d, ok := r.deployments.Resolve(rs.Namespace, ref); ok {
		q.Add(reconcile.RequestFor(d))
	}
	return ref != nil
}

// enqueueAdopters enqueues the Deployments whose selector matches rs. There should be at most one. If there are more,
// the first one to adopt rs owns it.
func (r router) enqueueAdopters(rs *appsv1.ReplicaSet, q enqueuer) {
	for _, d := range r.deployments.Adopters(rs) {
		q.Add(reconcile.RequestFor(d))
	}
}
