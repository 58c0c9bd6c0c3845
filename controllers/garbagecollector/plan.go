package garbagecollector

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ownership is what the API server says of each owner that an object names.
type ownership struct {
	// solid owners exist and keep the object.
	solid []metav1.OwnerReference
	// dangling ones do not exist.
	dangling []metav1.OwnerReference
	// waiting ones exist, but are being deleted in the foreground, and wait for the object to be deleted first.
	waiting []metav1.OwnerReference
}

// step is what to do with an object. One of its fields is set, or none: then there is nothing to do.
type step struct {
	// disown takes the references to these owners from the object.
	disown []types.UID
	// remove deletes the object, with this policy.
	remove *metav1.DeletionPropagation
	// unblock first makes the object's references not block its owners: else two objects that are each other's owner
	// would wait for each other for ever. It goes with remove.
	unblock bool
	// finish takes the finalizer foregroundDeletion from the object: nothing blocks its deletion.
	finish bool
	// look queues these dependents: the object waits for them.
	look []identity
}

// planWaiting decides about an object that waits for its dependents to be deleted.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/garbagecollector/garbagecollector.go, processDeletingDependentsItem
func planWaiting(v view) step {
	var s step
	blocked := false
	for _, d := range v.dependents {
		if !d.blocks {
			continue
		}
		blocked = true
		if !d.deletingDependents { // else it is looked at when its own dependents are gone
			s.look = append(s.look, d.id)
		}
	}
	s.finish = !blocked
	return s
}

// plan decides about an object that is not being deleted, from its latest state and what its owners are.
//
// Any solid owner keeps it; references to others are then taken away, also to those that wait for the object: they
// would wait in vain. With none, it is deleted, in the way that its own finalizers ask for. If an owner waits and the
// object has dependents itself, these go first too.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/garbagecollector/garbagecollector.go, attemptToDeleteItem
func plan(v view, latest *metav1.PartialObjectMetadata, owners ownership) step {
	switch {
	case len(latest.OwnerReferences) == 0:
		return step{}
	case len(owners.solid) > 0:
		return step{disown: uidsOf(owners.dangling, owners.waiting)}
	case len(owners.waiting) > 0 && len(v.dependents) > 0:
		cycle := slices.ContainsFunc(v.dependents, func(d dependentView) bool { return d.deletingDependents })
		return step{remove: policy(metav1.DeletePropagationForeground), unblock: cycle}
	case hasFinalizer(latest, metav1.FinalizerOrphanDependents):
		return step{remove: policy(metav1.DeletePropagationOrphan)}
	case hasFinalizer(latest, metav1.FinalizerDeleteDependents):
		return step{remove: policy(metav1.DeletePropagationForeground)}
	default:
		return step{remove: policy(metav1.DeletePropagationBackground)}
	}
}

func policy(p metav1.DeletionPropagation) *metav1.DeletionPropagation { return &p }

// isWaiting reports whether an owner is being deleted in the foreground.
func isWaiting(owner *metav1.PartialObjectMetadata) bool {
	return owner.DeletionTimestamp != nil && hasFinalizer(owner, metav1.FinalizerDeleteDependents)
}

func uidsOf(lists ...[]metav1.OwnerReference) []types.UID {
	var uids []types.UID
	for _, list := range lists {
		for _, ref := range list {
			uids = append(uids, ref.UID)
		}
	}
	return uids
}

func hasFinalizer(o *metav1.PartialObjectMetadata, finalizer string) bool {
	return slices.Contains(o.Finalizers, finalizer)
}
