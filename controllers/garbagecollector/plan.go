package garbagecollector

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// ownership divides the owners of an object by what the API server has answered about them.
type ownership struct {
	// solid owners exist and keep the object.
	solid []metav1.OwnerReference
	// dangling ones do not exist.
	dangling []metav1.OwnerReference
	// waiting ones exist, but are being deleted in the foreground, and wait for the object to be deleted first.
	waiting []metav1.OwnerReference
	// unresolved is why the server could not be asked about one of the owners, or nil.
	unresolved error
}

// step is what to do with an object. At most one field is set, but unblock goes with remove. If none is set, there is
// nothing to do.
type step struct {
	// disown removes the references to these owners from the object.
	disown []types.UID
	// remove deletes the object, with this policy.
	remove *metav1.DeletionPropagation
	// unblock clears blockOwnerDeletion in the object's references before the delete. Otherwise two objects that own
	// each other would wait for each other forever.
	unblock bool
	// removeFinalizer removes the finalizer foregroundDeletion from the object: nothing blocks its deletion.
	removeFinalizer bool
	// enqueue are dependents to put in the delete queue, because the object waits for them.
	enqueue []identity
}

// planWaiting decides about an object that waits for its dependents to be deleted.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/garbagecollector/garbagecollector.go, processDeletingDependentsItem
func planWaiting(v view) step {
	var s step
	blocked := false
	for _, d := range v.dependents {
		if !d.blocks {
			continue
		}
		blocked = true
		if !d.deletingDependents { // else it is queued when its own dependents are gone
			s.enqueue = append(s.enqueue, d.id)
		}
	}
	s.removeFinalizer = !blocked
	return s
}

// plan decides about an object that is not being deleted, from its latest state and the state of its owners.
//
// A solid owner keeps the object. plan then removes the references to all other owners. That includes the waiting ones,
// which would otherwise wait forever. Without a solid owner the object is deleted, with the policy that its finalizers
// ask for, unless an unresolved owner may be solid. If an owner waits for the object and the object has dependents,
// they are deleted first.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/garbagecollector/garbagecollector.go, attemptToDeleteItem
func plan(v view, latest *metav1.PartialObjectMetadata, owners ownership) step {
	switch {
	case len(latest.OwnerReferences) == 0:
		return step{}
	case len(owners.solid) > 0:
		return step{disown: uidsOf(owners.dangling, owners.waiting)}
	case owners.unresolved != nil:
		return step{}
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
