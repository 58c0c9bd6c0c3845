package pods

import (
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/flyball-dev/flyball/informer"
)

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
