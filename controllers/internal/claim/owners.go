package claim

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// Owners finds the owners that an event of an object concerns, among the owners of one kind in a cache.
type Owners[O metav1.Object] struct {
	Cache interface {
		Get(namespace, name string) (O, bool)
		List(namespace string, selector labels.Selector) []O
	}
	// Kind is the kind that owner references name.
	Kind string
	// Selector returns the selector of an owner, or nil.
	Selector func(O) *metav1.LabelSelector
}

// Resolve returns the owner that ref refers to. It returns false if ref names another kind, or if the owner is gone,
// even if another object has its name now.
func (o Owners[O]) Resolve(namespace string, ref *metav1.OwnerReference) (owner O, ok bool) {
	if ref == nil || ref.Kind != o.Kind {
		return owner, false
	}
	found, ok := o.Cache.Get(namespace, ref.Name)
	if !ok || found.GetUID() != ref.UID {
		return owner, false
	}
	return found, true
}

// Adopters returns the owners whose selector matches an orphan. An empty selector matches nothing.
func (o Owners[O]) Adopters(orphan metav1.Object) (adopters []O) {
	if len(orphan.GetLabels()) == 0 {
		return nil
	}
	for _, owner := range o.Cache.List(orphan.GetNamespace(), nil) {
		selector, err := metav1.LabelSelectorAsSelector(o.Selector(owner))
		if err == nil && !selector.Empty() && selector.Matches(labels.Set(orphan.GetLabels())) {
			adopters = append(adopters, owner)
		}
	}
	return adopters
}
