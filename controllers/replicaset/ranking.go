package replicaset

import (
	"math"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/controllers/internal/pods"
)

// deletionOrder decides which of two pods is deleted first. The first rule in which they differ decides:
//
//  1. a pod without a node goes before one that has been placed
//  2. Pending before Unknown before Running
//  3. not ready before ready
//  4. the lower annotation controller.kubernetes.io/pod-deletion-cost first
//  5. the pod on the node with more related pods first
//  6. among ready pods, the one that became ready later first
//  7. more container restarts first, those of sidecars counting only when the rest is equal
//  8. the younger pod first
//
// Rules 6 and 8 compare ages by their power of two. Pods of about the same age are ordered by UID, which is as good as
// random: otherwise each scale-down would delete the newest pods, which a scheduler tends to place together.
//
// Beware: that makes the order cyclic in rare cases. Three pods whose ready times fall into one power of two, two of
// them equal to the nanosecond, may each come before the next.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/controller_utils.go, ActivePodsWithRanks
type deletionOrder struct {
	now time.Time
	// colocated counts the related pods on each node.
	colocated map[string]int
}

// colocation counts the active pods of each node.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset/replica_set.go, getPodsRankedByRelatedPodsOnSameNode
func colocation(related []*corev1.Pod) map[string]int {
	count := make(map[string]int)
	for _, pod := range related {
		if pods.Active(pod) {
			count[pod.Spec.NodeName]++
		}
	}
	return count
}

// CompareForDeletion returns the comparison by which a ReplicaSet with too many pods chooses those to delete: it is
// negative if a is deleted before b. related are the pods of all ReplicaSets with the same owner, including this one.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/controller_utils.go, ActivePodsWithRanks
func CompareForDeletion(related []*corev1.Pod, now time.Time) func(a, b *corev1.Pod) int {
	return deletionOrder{now: now, colocated: colocation(related)}.compare
}

// compare returns a negative number if a is to be deleted before b.
func (o deletionOrder) compare(a, b *corev1.Pod) int {
	if d := falseFirst(a.Spec.NodeName != "", b.Spec.NodeName != ""); d != 0 {
		return d
	}
	if d := phaseRank(a) - phaseRank(b); d != 0 {
		return d
	}
	readyA, readyB := readyTime(a), readyTime(b)
	if d := falseFirst(readyA != nil, readyB != nil); d != 0 {
		return d
	}
	if costA, costB := deletionCost(a), deletionCost(b); costA != costB {
		return sign(costA < costB)
	}
	if nA, nB := o.colocated[a.Spec.NodeName], o.colocated[b.Spec.NodeName]; nA != nB {
		return sign(nA > nB)
	}
	if readyA != nil && !readyA.Equal(readyB) {
		return o.youngerFirst(readyA, readyB, a, b)
	}
	if d := moreRestartsFirst(a, b); d != 0 {
		return d
	}
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return o.youngerFirst(&a.CreationTimestamp, &b.CreationTimestamp, a, b)
	}
	return 0
}

// youngerFirst compares two different instants of a and b by the power of two of their age. An unknown instant counts
// as just now.
func (o deletionOrder) youngerFirst(timeA, timeB *metav1.Time, a, b *corev1.Pod) int {
	if timeA.IsZero() || timeB.IsZero() {
		return sign(timeA.IsZero())
	}
	if ageA, ageB := o.ageRank(timeA), o.ageRank(timeB); ageA != ageB {
		return sign(ageA < ageB)
	}
	return strings.Compare(string(a.UID), string(b.UID))
}

// ageRank returns the binary logarithm of the nanoseconds since t, rounded down, or -1 if t is not in the past.
func (o deletionOrder) ageRank(t *metav1.Time) int64 {
	age := o.now.Sub(t.Time)
	if age <= 0 {
		return -1
	}
	return int64(math.Log2(float64(age)))
}

// phaseRank orders the phases of active pods. A phase not yet reported counts as Pending.
func phaseRank(pod *corev1.Pod) int {
	switch pod.Status.Phase {
	case corev1.PodRunning:
		return 2
	case corev1.PodUnknown:
		return 1
	default:
		return 0
	}
}

// readyTime returns when the pod became ready, or nil if it is not ready. It points into the pod: read only.
func readyTime(pod *corev1.Pod) *metav1.Time {
	if c := pods.ReadyCondition(pod); c != nil && c.Status == corev1.ConditionTrue {
		return &c.LastTransitionTime
	}
	return nil
}

// deletionCost returns the value of the pod-deletion-cost annotation. It returns 0 if the annotation is missing or is
// not a plain 32-bit number; a plus sign or leading zeros are invalid.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/apis/core/v1/helper/helpers.go, GetDeletionCostFromPodAnnotations
func deletionCost(pod *corev1.Pod) int64 {
	value := pod.Annotations[corev1.PodDeletionCost]
	if value == "" || value[0] == '+' || (value[0] == '0' && value != "0") {
		return 0
	}
	cost, err := strconv.ParseInt(value, 10, 32)
	if err != nil {
		return 0
	}
	return cost
}

// moreRestartsFirst compares the restarts of the container that restarted most, then those of the sidecars.
func moreRestartsFirst(a, b *corev1.Pod) int {
	mainA, sidecarA := maxRestarts(a)
	mainB, sidecarB := maxRestarts(b)
	if mainA != mainB {
		return sign(mainA > mainB)
	}
	if sidecarA != sidecarB {
		return sign(sidecarA > sidecarB)
	}
	return 0
}

func maxRestarts(pod *corev1.Pod) (main, sidecar int32) {
	for i := range pod.Status.ContainerStatuses {
		main = max(main, pod.Status.ContainerStatuses[i].RestartCount)
	}
	for i := range pod.Status.InitContainerStatuses {
		status := &pod.Status.InitContainerStatuses[i]
		if status.RestartCount > sidecar && isSidecar(pod, status.Name) {
			sidecar = status.RestartCount
		}
	}
	return main, sidecar
}

// isSidecar reports whether an init container keeps running beside the others.
func isSidecar(pod *corev1.Pod, name string) bool {
	for i := range pod.Spec.InitContainers {
		c := &pod.Spec.InitContainers[i]
		if c.Name == name && c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			return true
		}
	}
	return false
}

// falseFirst orders false before true.
func falseFirst(a, b bool) int {
	if a == b {
		return 0
	}
	return sign(b)
}

// sign returns the result of a comparison: -1 if its first argument comes first, else 1.
func sign(first bool) int {
	if first {
		return -1
	}
	return 1
}
