package client

import (
	"encoding/json"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/flyball-dev/flyball/internal/misuse"
)

// Patch is a change of an object.
type Patch interface {
	// Type is the patch's format.
	Type() types.PatchType
	// Data is what to send, where obj is the state that is wanted.
	Data(obj Object) ([]byte, error)
}

// RawPatch is a patch that is written down.
func RawPatch(format types.PatchType, data []byte) Patch { return rawPatch{format, data} }

type rawPatch struct {
	format types.PatchType
	data   []byte
}

func (p rawPatch) Type() types.PatchType       { return p.format }
func (p rawPatch) Data(Object) ([]byte, error) { return p.data, nil }

// MergeFrom is the merge patch from base to the object given to Patch. base must not be changed between: pass a copy.
func MergeFrom(base Object) Patch { return mergeFrom{base: base} }

// MergeFromOptimistic is [MergeFrom] that the server refuses when the object is not any more at base's resource
// version.
func MergeFromOptimistic(base Object) Patch { return mergeFrom{base: base, optimistic: true} }

// StrategicMergeFrom is the strategic merge patch from base to the object given to Patch: lists with merge keys are
// merged, not replaced. For Go types of the built-in API only.
func StrategicMergeFrom(base Object) Patch { return mergeFrom{base: base, strategic: true} }

type mergeFrom struct {
	base                  Object
	optimistic, strategic bool
}

// Type implements [Patch].
func (p mergeFrom) Type() types.PatchType {
	if p.strategic {
		return types.StrategicMergePatchType
	}
	return types.MergePatchType
}

// Data implements [Patch].
func (p mergeFrom) Data(obj Object) ([]byte, error) {
	if misuse.IsNil(p.base) {
		return nil, errors.New(
			"the base of the patch is nil: give MergeFrom a copy of the object, taken before it was changed",
		)
	}
	before, err := json.Marshal(p.base)
	if err != nil {
		return nil, fmt.Errorf("encode the base of a patch: %w", err)
	}
	after, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("encode the object of a patch: %w", err)
	}
	var data []byte
	if p.strategic {
		data, err = strategicpatch.CreateTwoWayMergePatch(before, after, p.base)
	} else {
		data, err = mergePatch(before, after)
	}
	if err != nil || !p.optimistic {
		return data, err
	}
	return withVersion(data, p.base)
}

// withVersion makes a merge patch depend on the resource version of base.
func withVersion(patch []byte, base metav1.Object) ([]byte, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(patch, &fields); err != nil {
		return nil, fmt.Errorf("decode a patch: %w", err)
	}
	meta := map[string]json.RawMessage{}
	if raw, changed := fields["metadata"]; changed {
		if err := json.Unmarshal(raw, &meta); err != nil {
			return nil, fmt.Errorf("decode a patch of metadata: %w", err)
		}
	}
	for name, value := range map[string]string{
		"resourceVersion": base.GetResourceVersion(),
		"uid":             string(base.GetUID()),
	} {
		quoted, err := json.Marshal(value)
		if err != nil {
			return nil, err
		}
		if value != "" {
			meta[name] = quoted
		}
	}
	raw, err := json.Marshal(meta)
	if err != nil {
		return nil, err
	}
	fields["metadata"] = raw
	return json.Marshal(fields)
}

// ApplyUnstructured makes an object that is to be applied of u: what is set in u is what is applied. Resource
// version, managed fields and status are the caller's to leave out.
func ApplyUnstructured(u *unstructured.Unstructured) runtime.ApplyConfiguration {
	if u == nil {
		return nil // Apply refuses it, in words.
	}
	return &unstructuredApply{Unstructured: u}
}

// unstructuredApply encodes and decodes as the object that it embeds.
type unstructuredApply struct {
	*unstructured.Unstructured
}

// IsApplyConfiguration marks it as one.
func (u *unstructuredApply) IsApplyConfiguration() {}
