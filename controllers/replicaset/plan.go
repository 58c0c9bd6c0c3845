package replicaset

import (
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

// observed is everything a plan is made from. Nothing in it is changed by planning.
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
	// settled tells that pods may be created and deleted. After a refusal that will be repeated they are not for a
	// while.
	settled bool
	// now is the instant by which ages are judged.
	now time.Time
}

// plan is what is to be done to the pods. At most one of its parts is not zero.
type plan struct {
	create  int           // this many new pods
	victims []*corev1.Pod // these pods are deleted, the least valuable first
}

// planPods decides how many pods to create or which to delete so that set has as many as it asks for. It never asks for
// more than burst writes: the rest follows when the caches show these.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/replicaset/replica_set.go, syncReplicaSet and manageReplicas
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

// surplusOf is how many active pods there are beyond those asked for; negative when some are missing.
func surplusOf(o observed) int {
	return len(o.active) - int(desired(o.set))
}

// desired is the number of replicas that set asks for. The API server fills in the default, 1, before we see it.
func desired(set *appsv1.ReplicaSet) int32 {
	return ptr.Deref(set.Spec.Replicas, 1)
}

// chooseVictims returns the n pods that are the least loss. When all of them go, their order does not matter.
func chooseVictims(o observed, n int) []*corev1.Pod {
	if n >= len(o.active) {
		return slices.Clone(o.active)
	}
	ranked := slices.Clone(o.active)
	// The order has cycles (deletionOrder tells where), so what a sort makes of it depends on its input: a
	// stable one on pods sorted by name always comes to the same choice.
	slices.SortStableFunc(ranked, CompareForDeletion(o.related(), o.now))
	return ranked[:n]
}

// sortByName gives pods from an unordered cache the order that makes syncs repeatable.
func sortByName(list []*corev1.Pod) {
	slices.SortFunc(list, func(a, b *corev1.Pod) int { return strings.Compare(a.Name, b.Name) })
}
