package pods

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Terminal reports whether all of the pod's containers have stopped for good: its phase is Succeeded or Failed.
func Terminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// Active reports whether the pod counts as a replica: neither terminal nor being deleted.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/controller_utils.go, IsPodActive
func Active(pod *corev1.Pod) bool {
	return !Terminal(pod) && pod.DeletionTimestamp == nil
}

// Terminating reports whether the pod is being deleted and may still run.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/controller_utils.go, IsPodTerminating
func Terminating(pod *corev1.Pod) bool {
	return !Terminal(pod) && pod.DeletionTimestamp != nil
}

// ReadyCondition returns the pod's Ready condition, or nil. It points into the pod: read only.
func ReadyCondition(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.PodReady {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// Ready reports whether the pod's Ready condition is True.
func Ready(pod *corev1.Pod) bool {
	c := ReadyCondition(pod)
	return c != nil && c.Status == corev1.ConditionTrue
}

// Available reports whether the pod has been ready for at least minReadySeconds at the time now. A ready pod whose
// condition has no transition time is available only if minReadySeconds is 0.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/api/v1/pod/util.go, IsPodAvailable
func Available(pod *corev1.Pod, minReadySeconds int32, now time.Time) bool {
	c := ReadyCondition(pod)
	if c == nil || c.Status != corev1.ConditionTrue {
		return false
	}
	if minReadySeconds == 0 {
		return true
	}
	return !c.LastTransitionTime.IsZero() && !availableAt(c, minReadySeconds).After(now)
}

// AvailableAt returns the time at which a ready pod becomes available. It returns false if the pod is not ready, if
// minReadySeconds asks for no wait, or if the transition time is unknown.
func AvailableAt(pod *corev1.Pod, minReadySeconds int32) (time.Time, bool) {
	c := ReadyCondition(pod)
	if c == nil || c.Status != corev1.ConditionTrue || minReadySeconds <= 0 || c.LastTransitionTime.IsZero() {
		return time.Time{}, false
	}
	return availableAt(c, minReadySeconds), true
}

func availableAt(ready *corev1.PodCondition, minReadySeconds int32) time.Time {
	return ready.LastTransitionTime.Add(time.Duration(minReadySeconds) * time.Second)
}

// Key returns "namespace/name".
func Key(pod *corev1.Pod) string {
	return pod.Namespace + "/" + pod.Name
}
