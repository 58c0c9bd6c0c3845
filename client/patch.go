package client

import (
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/flyball-dev/flyball/client/internal/patches"
	"github.com/flyball-dev/flyball/internal/misuse"
)

// Patch is a change of an object.
type Patch interface {
	// Type is the format of the patch.
	Type() types.PatchType
	// Data returns the patch to send. obj is the state that the caller wants.
	Data(obj Object) ([]byte, error)
}

// RawPatch returns a patch that sends data, whatever the object is.
func RawPatch(format types.PatchType, data []byte) Patch { return rawPatch{format, data} }

type rawPatch struct {
	format types.PatchType
	data   []byte
}

// Type implements [Patch].
func (p rawPatch) Type() types.PatchType { return p.format }

// Data implements [Patch].
func (p rawPatch) Data(Object) ([]byte, error) { return p.data, nil }

// MergeFrom returns the JSON merge patch from base to the object given to Patch. base must not change until then: pass
// a copy.
func MergeFrom(base Object) Patch { return mergePatch{base: base} }

// MergeFromWithOptimisticLock is an option of [MergeFromWithOptions]. The server refuses the patch if the object is no
// longer at the resource version of the base.
type MergeFromWithOptimisticLock struct{}

// MergeFromWithOptions is [MergeFrom] with options.
func MergeFromWithOptions(base Object, lock ...MergeFromWithOptimisticLock) Patch {
	return mergePatch{base: base, optimistic: len(lock) > 0}
}

type mergePatch struct {
	base       Object
	optimistic bool
}

// Type implements [Patch].
func (p mergePatch) Type() types.PatchType { return types.MergePatchType }

// Data implements [Patch].
func (p mergePatch) Data(obj Object) ([]byte, error) {
	if misuse.IsNil(p.base) {
		return nil, errNoBase
	}
	if p.optimistic && p.base.GetResourceVersion() == "" {
		return nil, errNoVersion
	}
	patch, err := patches.Between(p.base, obj)
	if err != nil || !p.optimistic {
		return patch, err
	}
	changes, err := patches.Content(json.RawMessage(patch))
	if err != nil {
		return nil, err
	}
	patches.OnlyAt(p.base, changes)
	return json.Marshal(changes)
}

var errNoBase = errors.New(
	"the base of the patch is nil: give MergeFrom a copy of the object, taken before it was changed",
)

var errNoVersion = errors.New(
	"the base of the patch has no resource version, which an optimistic lock needs: read the object first",
)

// StrategicMergeFrom returns the strategic merge patch from base to the object given to Patch. The server merges lists
// that have merge keys instead of replacing them. It works for Go types of the built-in API only.
func StrategicMergeFrom(base Object) Patch { return strategicPatch{base} }

type strategicPatch struct{ base Object }

// Type implements [Patch].
func (p strategicPatch) Type() types.PatchType { return types.StrategicMergePatchType }

// Data implements [Patch].
func (p strategicPatch) Data(obj Object) ([]byte, error) {
	if misuse.IsNil(p.base) {
		return nil, errNoBase
	}
	before, err := json.Marshal(p.base)
	if err != nil {
		return nil, fmt.Errorf("encode the base of a patch: %w", err)
	}
	after, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("encode the object of a patch: %w", err)
	}
	return strategicpatch.CreateTwoWayMergePatch(before, after, p.base)
}

// Merge is the JSON merge patch that sends the whole object, and Apply the server-side apply of it. [Writer.Apply]
// also takes a part of an object.
var (
	Merge Patch = wholePatch(types.MergePatchType)
	Apply Patch = wholePatch(types.ApplyPatchType)
)

type wholePatch types.PatchType

// Type implements [Patch].
func (p wholePatch) Type() types.PatchType { return types.PatchType(p) }

// Data implements [Patch].
func (wholePatch) Data(obj Object) ([]byte, error) { return json.Marshal(obj) }

// ApplyConfigurationFromUnstructured returns u as an object to apply: the fields that u has are applied. The caller
// leaves out the resource version, managed fields and status.
func ApplyConfigurationFromUnstructured(u *unstructured.Unstructured) runtime.ApplyConfiguration {
	if u == nil {
		return nil // Apply refuses it.
	}
	return &applyConfiguration{u}
}

// applyConfiguration encodes and decodes as the object that it embeds.
type applyConfiguration struct{ *unstructured.Unstructured }

// IsApplyConfiguration implements [runtime.ApplyConfiguration].
func (*applyConfiguration) IsApplyConfiguration() {}
