package indexer

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// LabelIndex returns the name of an index by the values of one label. With such an index, List looks only at the
// objects that have the label's value, if the selector requires one. Add it with
//
//	inf.AddIndex(indexer.LabelIndex("app"), indexer.ByLabel[*corev1.Pod]("app"))
//
// No label is indexed by default: an index costs about forty bytes per object, and time at each change of the label.
func LabelIndex(key string) string { return labelIndexBegin + key + labelIndexEnd }

const (
	labelIndexBegin = "metadata.labels["
	labelIndexEnd   = "]"
)

// ByLabel returns the function for a [LabelIndex].
func ByLabel[T metav1.Object](key string) IndexFunc[T] {
	return func(obj T) ([]string, error) {
		if value, has := obj.GetLabels()[key]; has {
			return []string{value}, nil
		}
		return nil, nil
	}
}

// labelOf returns the label key of the [LabelIndex] of that name, or "" if the name is that of another index.
func labelOf(name string) string {
	if key, ok := strings.CutPrefix(name, labelIndexBegin); ok {
		if key, ok = strings.CutSuffix(key, labelIndexEnd); ok {
			return key
		}
	}
	return ""
}

// candidates returns the smallest bucket known to hold all objects of a namespace ("" means all) that match sel; nil if
// there are none. The caller holds a lock.
func (x *Indexer[T]) candidates(namespace string, sel labels.Selector) *bucket[T] {
	best := x.all
	if namespace != "" {
		best = x.indexes[0].buckets[namespace]
	}
	if best == nil || sel == nil || !x.labelled {
		return best
	}
	requirements, _ := sel.Requirements() // None, for a selector that matches nothing.
	for _, r := range requirements {
		op := r.Operator()
		equality := op == selection.Equals || op == selection.DoubleEquals || op == selection.In
		if !equality || r.Values().Len() != 1 {
			continue
		}
		for _, ix := range x.indexes[1:] {
			if ix.label != r.Key() {
				continue
			}
			b := ix.buckets[r.Values().UnsortedList()[0]]
			if b == nil {
				return nil
			}
			if len(b.entries) < len(best.entries) {
				best = b
			}
		}
	}
	return best
}

// selects reports whether an object is in a namespace ("" means any) and matches sel (nil matches all).
func selects[T any](obj T, namespace string, sel labels.Selector) bool {
	m, ok := any(obj).(metav1.Object)
	if !ok {
		return sel == nil && namespace == ""
	}
	return (namespace == "" || m.GetNamespace() == namespace) && (sel == nil || sel.Matches(labels.Set(m.GetLabels())))
}
