package deployment

import (
	"context"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
)

type enqueuer = reconcile.Enqueuer[reconcile.Request]

// router knows which Deployments a change concerns.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/deployment/deployment_controller.go
type router struct {
	deployments informer.Informer[*appsv1.Deployment]
	replicaSets informer.Informer[*appsv1.ReplicaSet]
}

// replicaSetEvents wakes the owner of a ReplicaSet; of one that has none, every Deployment that might adopt it.
func (r router) replicaSetEvents() reconcile.EventHandler[*appsv1.ReplicaSet, reconcile.Request] {
	return reconcile.EventHandler[*appsv1.ReplicaSet, reconcile.Request]{
		OnAdd: func(_ context.Context, rs *appsv1.ReplicaSet, _ bool, q enqueuer) {
			// One that is on its way out when a controller starts is no candidate for adoption any more.
			if !r.wakeOwner(rs, q) && rs.DeletionTimestamp == nil {
				r.wakeAdopters(rs, q)
			}
		},
		OnUpdate: func(_ context.Context, old, rs *appsv1.ReplicaSet, q enqueuer) {
			if old.ResourceVersion == rs.ResourceVersion {
				return // a resync
			}
			moved := !equality.Semantic.DeepEqual(metav1.GetControllerOfNoCopy(old), metav1.GetControllerOfNoCopy(rs))
			if moved {
				r.wakeOwner(old, q)
			}
			if r.wakeOwner(rs, q) {
				return
			}
			if moved || !equality.Semantic.DeepEqual(old.Labels, rs.Labels) {
				r.wakeAdopters(rs, q)
			}
		},
		OnDelete: func(_ context.Context, gone informer.Deleted[*appsv1.ReplicaSet], q enqueuer) {
			r.wakeOwner(gone.Object, q)
		},
	}
}

// podEvents wakes a Deployment that waits for its old pods to be gone.
func (r router) podEvents() reconcile.EventHandler[*corev1.Pod, reconcile.Request] {
	return reconcile.EventHandler[*corev1.Pod, reconcile.Request]{
		OnDelete: func(_ context.Context, gone informer.Deleted[*corev1.Pod], q enqueuer) {
			d := r.deploymentOf(gone.Object)
			if d != nil && d.Spec.Strategy.Type == appsv1.RecreateDeploymentStrategyType {
				q.Add(reconcile.RequestFor(d))
			}
		},
	}
}

// wakeOwner reports whether rs has an owner, which need not be a Deployment, nor still be there.
func (r router) wakeOwner(rs *appsv1.ReplicaSet, q enqueuer) bool {
	ref := metav1.GetControllerOfNoCopy(rs)
	if ref == nil {
		return false
	}
	if d := r.resolve(rs.Namespace, ref); d != nil {
		q.Add(reconcile.RequestFor(d))
	}
	return true
}

// wakeAdopters wakes the Deployments that select rs. There should be one at most; if there are more the owner
// reference keeps them apart.
func (r router) wakeAdopters(rs *appsv1.ReplicaSet, q enqueuer) {
	if len(rs.Labels) == 0 {
		return
	}
	for _, d := range r.deployments.List(rs.Namespace, nil) {
		selector, err := metav1.LabelSelectorAsSelector(d.Spec.Selector)
		if err == nil && !selector.Empty() && selector.Matches(labels.Set(rs.Labels)) {
			q.Add(reconcile.RequestFor(d))
		}
	}
}

// deploymentOf is the Deployment that owns the ReplicaSet that owns pod, or nil.
func (r router) deploymentOf(pod *corev1.Pod) *appsv1.Deployment {
	ref := metav1.GetControllerOfNoCopy(pod)
	if ref == nil || ref.Kind != replicaSetKind {
		return nil
	}
	rs, ok := r.replicaSets.Get(pod.Namespace, ref.Name)
	if !ok || rs.UID != ref.UID {
		return nil
	}
	if ref = metav1.GetControllerOfNoCopy(rs); ref == nil {
		return nil
	}
	return r.resolve(rs.Namespace, ref)
}

const replicaSetKind = "ReplicaSet"

// resolve is the Deployment that ref means: of that name, and still the same object.
func (r router) resolve(namespace string, ref *metav1.OwnerReference) *appsv1.Deployment {
	if ref.Kind != kind.Kind {
		return nil
	}
	d, ok := r.deployments.Get(namespace, ref.Name)
	if !ok || d.UID != ref.UID {
		return nil
	}
	return d
}
