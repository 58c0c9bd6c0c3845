package replicaset

import (
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// observed is everything a plan is made from. Planning does not change it.
type observed struct {
	// set is the ReplicaSet as the cache has it.
	set *appsv1.ReplicaSet
	// active are the set's pods that count as replicas, sorted by name.
	// Invariant: each is [pods.Active], controlled by set and matched by its selector.
	active []*corev1.Pod
	// terminating are the set's pods that are being deleted and still run.
	terminating []*corev1.Pod
	// related returns the pods that compete with active for nodes: those of all ReplicaSets with the same controller.
	// It is a function because finding them is expensive, and only the choice among victims needs them.
	related func() []*corev1.Pod
	// settled reports whether pods may be created and deleted. It is false for a while after a refusal that will be
	// repeated.
	settled bool
	// now is the time at which the ages of pods are measured.
	now time.Time
}

// plan is what to do with the pods. At most one field is set.
type plan struct {
	create  int           // this many new pods
	victims []*corev1.Pod // these pods are deleted, the least valuable first
}

// planPods decides how many pods to create or which to delete so that set has as many as it asks for. It plans at most
// burst writes: the next sync plans the rest.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset/replica_set.go, syncReplicaSet and manageReplicas
func planPods(o observed, burst int) plan {
	if !o.settled || o.set.DeletionTimestamp != nil {
		return plan{}
	}
	switch surplus := surplusOf(o); {
	case surplus < 0:
		return plan{create: min(-surplus, burst)}
	case surplus > 0:
		return plan{victims: chooseVictims(o, min(surplus, burst))}
	default:
		return plan{}
	}
}

// surplusOf returns how many active pods there are beyond those asked for. It is negative when some are missing.
func surplusOf(o observed) int {
	return len(o.active) - int(desired(o.set))
}

// desired returns the number of replicas that set asks for. The API server has already filled in the default, 1.
func desired(set *appsv1.ReplicaSet) int32 {
	return ptr.Deref(set.Spec.Replicas, 1)
}

// chooseVictims returns the n pods to delete. When all of them go, their order does not matter.
func chooseVictims(o observed, n int) []*corev1.Pod {
	if n >= len(o.active) {
		return slices.Clone(o.active)
	}
	ranked := slices.Clone(o.active)
	// The order has cycles, see deletionOrder, so the result depends on the order of the input. A stable sort of pods
	// that are already sorted by name always gives the same result.
	slices.SortStableFunc(ranked, CompareForDeletion(o.related(), o.now))
	return ranked[:n]
}

// sortByName sorts pods from an unordered cache, so that syncs are repeatable.
func sortByName(list []*corev1.Pod) {
	slices.SortFunc(list, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
}
