package v1alpha1

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Conditions hold only values, so a copy of the slice is deep.

// DeepCopyObject implements runtime.Object.
func (p *IPPool) DeepCopyObject() runtime.Object {
	c := *p
	p.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	c.Spec.Allocations = maps.Clone(p.Spec.Allocations)
	c.Status.AllocatedIPs = slices.Clone(p.Status.AllocatedIPs)
	c.Status.Conditions = slices.Clone(p.Status.Conditions)
	return &c
}

// DeepCopyObject implements runtime.Object.
func (p *NodeSlicePool) DeepCopyObject() runtime.Object {
	c := *p
	p.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	c.Status.Allocations = slices.Clone(p.Status.Allocations)
	c.Status.Conditions = slices.Clone(p.Status.Conditions)
	return &c
}

// DeepCopyObject implements runtime.Object.
func (r *OverlappingRangeIPReservation) DeepCopyObject() runtime.Object {
	c := *r
	r.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	c.Status.Conditions = slices.Clone(r.Status.Conditions)
	return &c
}

// DeepCopyObject implements runtime.Object.
func (n *NetworkAttachmentDefinition) DeepCopyObject() runtime.Object {
	c := *n
	n.ObjectMeta.DeepCopyInto(&c.ObjectMeta)
	return &c
}

// DeepCopyObject implements runtime.Object.
func (l *IPPoolList) DeepCopyObject() runtime.Object {
	c := *l
	l.ListMeta.DeepCopyInto(&c.ListMeta)
	c.Items = copies[IPPool](l.Items)
	return &c
}

// DeepCopyObject implements runtime.Object.
func (l *NodeSlicePoolList) DeepCopyObject() runtime.Object {
	c := *l
	l.ListMeta.DeepCopyInto(&c.ListMeta)
	c.Items = copies[NodeSlicePool](l.Items)
	return &c
}

// DeepCopyObject implements runtime.Object.
func (l *OverlappingRangeIPReservationList) DeepCopyObject() runtime.Object {
	c := *l
	l.ListMeta.DeepCopyInto(&c.ListMeta)
	c.Items = copies[OverlappingRangeIPReservation](l.Items)
	return &c
}

// DeepCopyObject implements runtime.Object.
func (l *NetworkAttachmentDefinitionList) DeepCopyObject() runtime.Object {
	c := *l
	l.ListMeta.DeepCopyInto(&c.ListMeta)
	c.Items = copies[NetworkAttachmentDefinition](l.Items)
	return &c
}

// copies copies objects one by one.
func copies[T any, P interface {
	*T
	metav1.Object
	runtime.Object
}](items []T) []T {
	if items == nil {
		return nil
	}
	all := make([]T, len(items))
	for i := range items {
		all[i] = *any(P(&items[i]).DeepCopyObject()).(*T)
	}
	return all
}
