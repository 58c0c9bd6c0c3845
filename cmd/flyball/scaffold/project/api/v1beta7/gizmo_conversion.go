package v1beta7

import (
	"github.com/flyball-dev/flyball/manager/webhook/conversion"

	samplev1alpha1 "github.com/flyball-dev/flyball/cmd/flyball/scaffold/project/api/v1alpha1"
)

var _ conversion.Convertible = (*Gizmo)(nil)

// ConvertTo implements conversion.Convertible. The metadata is copied already. The types of both versions have the same
// fields, so Go converts them; where they differ, assign the fields one by one. The API server may store hub and
// nothing else: keep what it has no field for, for example in an annotation.
func (in *Gizmo) ConvertTo(hub conversion.Hub) error {
	out := hub.(*samplev1alpha1.Gizmo)
	out.Spec = samplev1alpha1.GizmoSpec(in.Spec)
	out.Status = samplev1alpha1.GizmoStatus(in.Status)
	return nil
}

// ConvertFrom implements conversion.Convertible. It is the reverse of ConvertTo.
func (out *Gizmo) ConvertFrom(hub conversion.Hub) error {
	in := hub.(*samplev1alpha1.Gizmo)
	out.Spec = GizmoSpec(in.Spec)
	out.Status = GizmoStatus(in.Status)
	return nil
}
