package api

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// The copies share nothing with their originals. TestCopiesShareNothing checks every field.

// DeepCopy returns a copy.
func (i *Item) DeepCopy() *Item {
	c := *i
	i.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	if i.Spec.RecountEvery != nil {
		every := *i.Spec.RecountEvery
		c.Spec.RecountEvery = &every
	}
	c.Status.LastCounted = i.Status.LastCounted.DeepCopy()
	c.Status.Conditions = copyConditions(i.Status.Conditions)
	return &c
}

// DeepCopyObject implements runtime.Object.
func (i *Item) DeepCopyObject() runtime.Object { return i.DeepCopy() }

// DeepCopyObject implements runtime.Object.
func (l *ItemList) DeepCopyObject() runtime.Object {
	c := *l
	l.ListMeta.DeepCopyInto(&c.ListMeta)
	c.Items = nil
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopy())
	}
	return &c
}

// DeepCopy returns a copy.
func (c *Category) DeepCopy() *Category {
	d := *c
	c.ObjectMeta.DeepCopyInto(&d.ObjectMeta)
	d.Status.Numbers = maps.Clone(c.Status.Numbers)
	d.Status.Conditions = copyConditions(c.Status.Conditions)
	return &d
}

// DeepCopyObject implements runtime.Object.
func (c *Category) DeepCopyObject() runtime.Object { return c.DeepCopy() }

// DeepCopyObject implements runtime.Object.
func (l *CategoryList) DeepCopyObject() runtime.Object {
	c := *l
	l.ListMeta.DeepCopyInto(&c.ListMeta)
	c.Items = nil
	for i := range l.Items {
		c.Items = append(c.Items, *l.Items[i].DeepCopy())
	}
	return &c
}

func copyConditions(list []metav1.Condition) (out []metav1.Condition) {
	for i := range list {
		out = append(out, *list[i].DeepCopy())
	}
	return out
}
