package v1alpha1

import "github.com/flyball-dev/flyball/manager/webhook/conversion"

var _ conversion.Hub = (*Gizmo)(nil)

// Hub implements conversion.Hub: all other versions convert to this one and from it.
func (*Gizmo) Hub() {}
