package kubelet

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// candidate is a node as the scheduler sees it.
type candidate struct {
	node *corev1.Node
	// pods is the number of pods that are bound to the node, or about to be.
	pods int
	// capacity is the number of pods that the node takes.
	capacity int
}

// place returns the candidate for a pod: among those that can take it, the one with the fewest pods, and among equals
// the first. If none can, it returns the reason in the scheduler's words.
func place(pod *corev1.Pod, candidates []candidate) (name, reason string) {
	best := -1
	var full, cordoned, mismatched int
	for i, c := range candidates {
		switch {
		case c.node.Spec.Unschedulable:
			cordoned++
		case !labels.SelectorFromSet(pod.Spec.NodeSelector).Matches(labels.Set(c.node.Labels)):
			mismatched++
		case c.pods >= c.capacity:
			full++
		case best < 0 || c.pods < candidates[best].pods:
			best = i
		}
	}
	if best >= 0 {
		return candidates[best].node.Name, ""
	}
	return "", unavailable(len(candidates), full, cordoned, mismatched)
}

func unavailable(all, full, cordoned, mismatched int) string {
	if all == 0 {
		return "no nodes available to schedule pods"
	}
	var why []string
	for _, r := range []struct {
		count int
		text  string
	}{
		{full, "Too many pods"},
		{mismatched, "node(s) didn't match Pod's node affinity/selector"},
		{cordoned, "node(s) were unschedulable"},
	} {
		if r.count > 0 {
			why = append(why, itoa(r.count)+" "+r.text)
		}
	}
	return "0/" + itoa(all) + " nodes are available: " + strings.Join(why, ", ") + "."
}

// schedulable reports whether this scheduler should bind the pod now.
func schedulable(pod *corev1.Pod) bool {
	mine := pod.Spec.SchedulerName == "" || pod.Spec.SchedulerName == corev1.DefaultSchedulerName
	return mine && pod.Spec.NodeName == "" && pod.DeletionTimestamp == nil && len(pod.Spec.SchedulingGates) == 0 &&
		!terminal(pod)
}

func terminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
