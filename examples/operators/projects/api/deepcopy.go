package api

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime"
)

// Conditions hold only values, so a copy of the slice is deep.

// DeepCopyObject implements runtime.Object.
func (p *Project) DeepCopyObject() runtime.Object { return p.deepCopy() }

func (p *Project) deepCopy() *Project {
	c := *p
	p.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	c.Status.Conditions = slices.Clone(p.Status.Conditions)
	return &c
}

// DeepCopyObject implements runtime.Object.
func (p *ProjectControlPlane) DeepCopyObject() runtime.Object { return p.deepCopy() }

func (p *ProjectControlPlane) deepCopy() *ProjectControlPlane {
	c := *p
	p.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	c.Status.Conditions = slices.Clone(p.Status.Conditions)
	return &c
}

// DeepCopyObject implements runtime.Object.
func (l *ProjectList) DeepCopyObject() runtime.Object {
	c := *l
	l.ListMeta.DeepCopyInto(&c.ListMeta)
	c.Items = slices.Clone(l.Items)
	for i := range c.Items {
		c.Items[i] = *l.Items[i].deepCopy()
	}
	return &c
}

// DeepCopyObject implements runtime.Object.
func (l *ProjectControlPlaneList) DeepCopyObject() runtime.Object {
	c := *l
	l.ListMeta.DeepCopyInto(&c.ListMeta)
	c.Items = slices.Clone(l.Items)
	for i := range c.Items {
		c.Items[i] = *l.Items[i].deepCopy()
	}
	return &c
}
