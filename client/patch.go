package client

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/client/internal/patches"
)

// Patch is a change of an object.
type Patch interface {
	// Type is the patch's format.
	Type() types.PatchType
	// Data is what to send, where obj is the state that is wanted.
	Data(obj Object) ([]byte, error)
}

// RawPatch is a patch that is written down.
func RawPatch(format types.PatchType, data []byte) Patch {
	return patches.Raw{Format: format, Body: data}
}

// MergeFrom is the merge patch from base to the object given to Patch. base must not be changed between: pass a copy.
func MergeFrom(base Object) Patch { return patches.From{Base: base} }

// MergeFromOptimistic is [MergeFrom] that the server refuses when the object is not any more at base's resource
// version.
func MergeFromOptimistic(base Object) Patch { return patches.From{Base: base, Optimistic: true} }

// StrategicMergeFrom is the strategic merge patch from base to the object given to Patch: lists with merge keys are
// merged, not replaced. For Go types of the built-in API only.
func StrategicMergeFrom(base Object) Patch { return patches.From{Base: base, Strategic: true} }

// ApplyUnstructured makes an object that is to be applied of u: what is set in u is what is applied. Resource
// version, managed fields and status are the caller's to leave out.
func ApplyUnstructured(u *unstructured.Unstructured) runtime.ApplyConfiguration {
	if u == nil {
		return nil // Apply refuses it, in words.
	}
	return &patches.Configuration{Unstructured: u}
}
