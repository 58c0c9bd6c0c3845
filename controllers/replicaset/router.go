package replicaset

import (
	"context"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/controllers/internal/pods"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
)

// router turns changes into the keys of the ReplicaSets they concern. It remembers nothing.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/replicaset/replica_set.go, addRS … deletePod
type router struct {
	sets setLister
}

// setLister is the ReplicaSet informer as far as the router needs it.
type setLister interface {
	Get(namespace, name string) (*appsv1.ReplicaSet, bool)
	List(namespace string, selector labels.Selector) []*appsv1.ReplicaSet
}

type (
	enqueuer = reconcile.Enqueuer[reconcile.Request]
	podEvent = reconcile.EventHandler[*corev1.Pod, reconcile.Request]
	setEvent = reconcile.EventHandler[*appsv1.ReplicaSet, reconcile.Request]
)

// setEvents queues a ReplicaSet on every change of it, its own status writes and resyncs included: a sync that has
// nothing to do is cheap, and a set whose pods could not be created gets another try.
func (w router) setEvents() setEvent { return reconcile.EnqueueObject[*appsv1.ReplicaSet]() }

// podEvents queues the ReplicaSet a pod belongs to or might come to belong to.
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

// podAdded wakes the pod's owner, or for an orphan everyone who might adopt it.
func (w router) podAdded(ctx context.Context, pod *corev1.Pod, q enqueuer) {
	if pod.DeletionTimestamp != nil { // after a restart the first sight of a pod may be its end
		w.podGone(pod, q)
		return
	}
	if ref := metav1.GetControllerOfNoCopy(pod); ref != nil {
		w.enqueueOwner(pod.Namespace, ref, q)
		return
	}
	w.enqueueAdopters(ctx, pod, q)
}

// podChanged wakes the owner, the previous owner if that changed, and for an orphan whose labels or owner changed
// everyone who might adopt it now.
func (w router) podChanged(ctx context.Context, old, pod *corev1.Pod, q enqueuer) {
	if old.ResourceVersion == pod.ResourceVersion {
		return // a resync
	}
	relabelled := !equality.Semantic.DeepEqual(old.Labels, pod.Labels)
	if pod.DeletionTimestamp != nil { // on its way out: a replacement need not wait until it is gone
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

// podGone wakes the owner. Nobody misses an orphan.
func (w router) podGone(pod *corev1.Pod, q enqueuer) {
	if ref := metav1.GetControllerOfNoCopy(pod); ref != nil {
		w.enqueueOwner(pod.Namespace, ref, q)
	}
}

// enqueueOwner queues the ReplicaSet that ref names and returns it; nil when ref names something else, or a set that
// is not in the cache, or an earlier one of the same name.
func (w router) enqueueOwner(namespace string, ref *metav1.OwnerReference, q enqueuer) *appsv1.ReplicaSet {
	if ref.Kind != kind.Kind {
		return nil
	}
	set, ok := w.sets.Get(namespace, ref.Name)
	if !ok || set.UID != ref.UID {
		return nil
	}
	q.Add(reconcile.RequestFor(set))
	return set
}

// enqueueAdopters queues every ReplicaSet whose selector matches the orphan. More than one is a user's mistake,
// though a harmless one: the first to adopt it has it.
func (w router) enqueueAdopters(ctx context.Context, orphan *corev1.Pod, q enqueuer) {
	if len(orphan.Labels) == 0 {
		return
	}
	var found []*appsv1.ReplicaSet
	for _, set := range w.sets.List(orphan.Namespace, nil) {
		selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
		if err == nil && !selector.Empty() && selector.Matches(labels.Set(orphan.Labels)) {
			found = append(found, set)
			q.Add(reconcile.RequestFor(set))
		}
	}
	if len(found) > 1 {
		klog.FromContext(ctx).Info("More than one ReplicaSet selects the pod", "pod", klog.KObj(orphan),
			"replicaSets", klog.KObjSlice(found))
	}
}
