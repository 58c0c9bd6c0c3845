package pods

import (
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/flyball-dev/flyball/informer"
)

// Terminal reports whether all of the pod's containers have stopped for good: its phase is Succeeded or Failed.
func Terminal(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

// Active reports whether the pod counts as a replica: neither terminal nor being deleted.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/controller_utils.go, IsPodActive
func Active(pod *corev1.Pod) bool {
	return !Terminal(pod) && pod.DeletionTimestamp == nil
}

// Terminating reports whether the pod is being deleted and may still run.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/controller_utils.go, IsPodTerminating
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
// Source: k8s.io/kubernetes v1.37.2 pkg/api/v1/pod/util.go, IsPodAvailable
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

// LabelIndex is the name of the index that [IndexByLabel] fills.
const LabelIndex = "podLabel"

// IndexByLabel is an index function that files a pod under each of its labels.
func IndexByLabel(pod *corev1.Pod) ([]string, error) {
	values := make([]string, 0, len(pod.Labels))
	for key, value := range pod.Labels {
		values = append(values, labelValue(pod.Namespace, key, value))
	}
	return values, nil
}

// labelValue is unambiguous: a namespace contains neither "=" nor "/", and a label contains no "=".
func labelValue(namespace, key, value string) string { return namespace + "/" + key + "=" + value }

// AddLabelIndex makes sure that the informer has the index [LabelIndex], which [Selected] needs.
func AddLabelIndex(inf informer.Informer[*corev1.Pod]) error {
	if err := inf.AddIndex(LabelIndex, IndexByLabel); err != nil && !errors.Is(err, informer.ErrIndexExists) {
		return fmt.Errorf("index pods by label: %w", err)
	}
	return nil
}

// Selected returns the pods of a namespace that a selector matches. It looks only at the pods that have the rarest of
// the required labels, so its cost does not grow with the other pods of the namespace.
//
// Differs: kube-controller-manager looks at all pods of the namespace.
func Selected(inf informer.Informer[*corev1.Pod], namespace string, selector labels.Selector) ([]*corev1.Pod, error) {
	requirements, selectable := selector.Requirements()
	if !selectable {
		return nil, nil
	}
	var candidates []*corev1.Pod
	found := false
	for i := range requirements {
		value, exact := only(&requirements[i])
		if !exact {
			continue
		}
		some, err := inf.ByIndex(LabelIndex, labelValue(namespace, requirements[i].Key(), value))
		if err != nil {
			return nil, fmt.Errorf("list pods by label: %w", err)
		}
		if !found || len(some) < len(candidates) {
			candidates, found = some, true
		}
	}
	if !found {
		return inf.List(namespace, selector), nil
	}
	kept := candidates[:0] // safe to reuse: ByIndex returns a new slice
	for _, pod := range candidates {
		if selector.Matches(labels.Set(pod.Labels)) {
			kept = append(kept, pod)
		}
	}
	return kept, nil
}

// only returns the value that a requirement allows, and reports whether there is exactly one.
func only(r *labels.Requirement) (value string, exact bool) {
	switch r.Operator() {
	case selection.Equals, selection.DoubleEquals, selection.In:
		if values := r.ValuesUnsorted(); len(values) == 1 {
			return values[0], true
		}
	}
	return "", false
}
