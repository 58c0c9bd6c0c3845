package v1beta7

import (
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/manager/webhook/conversion"
)

var _ conversion.Convertible = (*Gizmo)(nil)

// ConvertTo implements conversion.Convertible. The API server may store hub and nothing else: where hub does not have a
// field of this version, keep its value, for example in an annotation.
func (in *Gizmo) ConvertTo(hub conversion.Hub) error { return convertGizmo(in, hub) }

// ConvertFrom implements conversion.Convertible. It is the reverse of ConvertTo.
func (out *Gizmo) ConvertFrom(hub conversion.Hub) error { return convertGizmo(hub, out) }

// convertGizmo copies all fields by their names in JSON, but for the version. It returns an error if a field is set
// that out does not have: where the versions differ, assign the fields in ConvertTo and ConvertFrom instead.
func convertGizmo(in, out runtime.Object) error {
	kind := out.GetObjectKind().GroupVersionKind()
	fields, err := runtime.DefaultUnstructuredConverter.ToUnstructured(in)
	if err != nil {
		return err
	}
	err = runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(fields, out, true)
	out.GetObjectKind().SetGroupVersionKind(kind)
	return err
}
