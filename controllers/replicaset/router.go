package replicaset

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/controllers/internal/claim"
	"github.com/flyball-dev/flyball/controllers/internal/pods"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
)

// router finds the ReplicaSets that an event concerns, and adds their keys to the queue.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset/replica_set.go, addRS … deletePod
type router struct {
	sets claim.Owners[*appsv1.ReplicaSet]
}

func newRouter(sets informer.Informer[*appsv1.ReplicaSet]) router {
	return router{claim.Owners[*appsv1.ReplicaSet]{
		Cache: sets, Kind: kind.Kind,
		Selector: func(set *appsv1.ReplicaSet) *metav1.LabelSelector { return set.Spec.Selector },
	}}
}

type (
	enqueuer = reconcile.Enqueuer[reconcile.Request]
	podEvent = handler.EventHandler[*corev1.Pod, reconcile.Request]
	setEvent = handler.EventHandler[*appsv1.ReplicaSet, reconcile.Request]
)

// setEvents queues a ReplicaSet on every event of it, even on resyncs and on events of the controller's own status
// writes. A sync that has nothing to do is cheap, and a ReplicaSet whose pods could not be created gets another try.
func (w router) setEvents() setEvent { return handler.EnqueueObject[*appsv1.ReplicaSet]() }

// podEvents queues the ReplicaSet that owns a pod, or the ReplicaSets that may adopt it.
func (w router) podEvents() podEvent {
	return podEvent{
		OnAdd: func(ctx context.Context, pod *corev1.Pod, _ bool, q enqueuer) { w.podAdded(ctx, pod, q) },
		OnUpdate: func(ctx context.Context, old, pod *corev1.Pod, q enqueuer) {
			if old.UID != pod.UID { // another pod under the same name: two events in one
				w.podGone(old, q)
				w.podAdded(ctx, pod, q)
				return
			}
			w.podChanged(ctx, old, pod, q)
		},
		OnDelete: func(_ context.Context, gone informer.Deleted[*corev1.Pod], q enqueuer) { w.podGone(gone.Object, q) },
	}
}

// podAdded queues the pod's owner. If the pod has none, it queues every ReplicaSet that may adopt it.
func (w router) podAdded(ctx context.Context, pod *corev1.Pod, q enqueuer) {
	if pod.DeletionTimestamp != nil { // after a restart the first event of a pod may show its deletion
		w.podGone(pod, q)
		return
	}
	if ref := metav1.GetControllerOfNoCopy(pod); ref != nil {
		w.enqueueOwner(pod.Namespace, ref, q)
		return
	}
	w.enqueueAdopters(ctx, pod, q)
}

// podChanged queues the owner, and the previous owner if it is another. If the pod has lost its owner, or has none and
// new labels, it queues every ReplicaSet that may adopt it.
func (w router) podChanged(ctx context.Context, old, pod *corev1.Pod, q enqueuer) {
	if old.ResourceVersion == pod.ResourceVersion {
		return // a resync
	}
	relabelled := !equality.Semantic.DeepEqual(old.Labels, pod.Labels)
	if pod.DeletionTimestamp != nil { // terminating: a replacement can be created now
		w.podGone(pod, q)
		if relabelled {
			w.podGone(old, q)
		}
		return
	}
	ref, oldRef := metav1.GetControllerOfNoCopy(pod), metav1.GetControllerOfNoCopy(old)
	moved := !equality.Semantic.DeepEqual(ref, oldRef)
	if moved && oldRef != nil {
		w.enqueueOwner(old.Namespace, oldRef, q)
	}
	switch {
	case ref != nil:
		set := w.enqueueOwner(pod.Namespace, ref, q)
		if set != nil && set.Spec.MinReadySeconds > 0 && !pods.Ready(old) && pods.Ready(pod) {
			q.AddAfter(reconcile.RequestFor(set), time.Duration(set.Spec.MinReadySeconds)*time.Second)
		}
	case relabelled || moved:
		w.enqueueAdopters(ctx, pod, q)
	}
}

// podGone queues the owner, if there is one.
func (w router) podGone(pod *corev1.Pod, q enqueuer) {
	if ref := metav1.GetControllerOfNoCopy(pod); ref != nil {
		w.enqueueOwner(pod.Namespace, ref, q)
	}
}

// enqueueOwner queues the ReplicaSet that ref refers to and returns it. It returns nil if ref names another kind, or if
// the ReplicaSet is gone.
func (w router) enqueueOwner(namespace string, ref *metav1.OwnerReference, q enqueuer) *appsv1.ReplicaSet {
	set, ok := w.sets.Resolve(namespace, ref)
	if !ok {
		return nil
	}
	q.Add(reconcile.RequestFor(set))
	return set
}

// enqueueAdopters queues every ReplicaSet whose selector matches the orphan. If there are several, the user has made a
// mistake. It is harmless: the first one to adopt the pod owns it.
func (w router) enqueueAdopters(ctx context.Context, orphan *corev1.Pod, q enqueuer) {
	found := w.sets.Adopters(orphan)
	for _, set := range found {
		q.Add(reconcile.RequestFor(set))
	}
	if len(found) > 1 {
		klog.FromContext(ctx).Info("More than one ReplicaSet selects the pod", "pod", klog.KObj(orphan),
			"replicaSets", klog.KObjSlice(found))
	}
}
