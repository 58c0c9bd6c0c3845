package registry

import (
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/managedfields"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

// ViewManagers carries managed fields between an object and a view of it that is written as an object of its own. In a
// scale, the owners of spec.replicas are those of the field that it stands for.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/registry/apps/deployment/storage/storage.go scaleUpdatedObjectInfo.
type ViewManagers struct {
	scale *managedfields.ScaleHandler // nil: the view is the object, with the object's managed fields
}

// NewViewManagers starts from the managed fields of an object before a change.
func NewViewManagers(r *Resource, sub resource.Subresource, obj metav1.Object) *ViewManagers {
	if sub.Replicas == nil {
		return &ViewManagers{}
	}
	gv := r.Definition.GroupVersion
	paths := managedfields.ResourcePathMappings{}
	for _, kind := range r.Definition.Kinds() { // all versions are taken to have the field at the same place
		paths[kind.GroupVersion().String()] = sub.Replicas
	}
	return &ViewManagers{managedfields.NewScaleHandler(obj.GetManagedFields(), gv, paths)}
}

// Give sets the view's managed fields before a change.
func (v *ViewManagers) Give(view metav1.Object) error {
	if v.scale == nil {
		return nil
	}
	fields, err := v.scale.ToSubresource()
	if err != nil {
		return fmt.Errorf("managed fields of the view: %w", err)
	}
	view.SetManagedFields(fields)
	return nil
}

// Take sets the object's managed fields after a change of the view.
func (v *ViewManagers) Take(obj, view metav1.Object) error {
	if v.scale == nil {
		obj.SetManagedFields(view.GetManagedFields())
		return nil
	}
	fields, err := v.scale.ToParent(view.GetManagedFields())
	if err != nil {
		return fmt.Errorf("managed fields below the view: %w", err)
	}
	obj.SetManagedFields(fields)
	return nil
}
