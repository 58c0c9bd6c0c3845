package patches

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/jsonpatch"
	"github.com/flyball-dev/flyball/internal/misuse"
)

// Raw is a patch that is written down.
type Raw struct {
	Format types.PatchType
	Body   []byte
}

// Type is the patch's format.
func (r Raw) Type() types.PatchType { return r.Format }

// Data is the body.
func (r Raw) Data(informer.Object) ([]byte, error) { return r.Body, nil }

// From is the patch from Base to the object that Data is given.
type From struct {
	Base informer.Object
	// Optimistic makes it depend on the resource version of Base.
	Optimistic bool
	// Strategic makes it a strategic merge patch, which is never optimistic.
	Strategic bool
}

// Type is the patch's format.
func (p From) Type() types.PatchType {
	if p.Strategic {
		return types.StrategicMergePatchType
	}
	return types.MergePatchType
}

// Data is what to send, where obj is the state that is wanted.
func (p From) Data(obj informer.Object) ([]byte, error) {
	if misuse.IsNil(p.Base) {
		return nil, errors.New(
			"the base of the patch is nil: give MergeFrom a copy of the object, taken before it was changed",
		)
	}
	if p.Strategic {
		return p.strategic(obj)
	}
	changes, err := changesOf(p.Base, obj)
	if err != nil {
		return nil, err
	}
	if p.Optimistic {
		OnlyAt(p.Base, changes)
	}
	return json.Marshal(changes)
}

// changesOf returns the patch from base to obj.
func changesOf(base, obj informer.Object) (map[string]any, error) {
	if changes, ok := typedDifference(base, obj); ok {
		return changes, nil
	}
	before, err := Content(base)
	if err != nil {
		return nil, fmt.Errorf("the base of a patch: %w", err)
	}
	after, err := Content(obj)
	if err != nil {
		return nil, fmt.Errorf("the object of a patch: %w", err)
	}
	return Difference(before, after), nil
}

func (p From) strategic(obj informer.Object) ([]byte, error) {
	before, err := json.Marshal(p.Base)
	if err != nil {
		return nil, fmt.Errorf("encode the base of a patch: %w", err)
	}
	after, err := json.Marshal(obj)
	if err != nil {
		return nil, fmt.Errorf("encode the object of a patch: %w", err)
	}
	return strategicpatch.CreateTwoWayMergePatch(before, after, p.Base)
}

// Applied applies a patch to an object. data is the object as JSON, and so is the result. Apply patches are not
// supported, nor strategic ones for unstructured objects.
func Applied(ctx context.Context, format types.PatchType, obj informer.Object, data, patch []byte) ([]byte, error) {
	switch _, untyped := obj.(runtime.Unstructured); {
	case format == types.JSONPatchType:
		decoded, err := jsonpatch.Decode(patch)
		if err != nil {
			return nil, err
		}
		return decoded.Apply(ctx, data)
	case format == types.MergePatchType:
		return jsonpatch.Merge(data, patch)
	case format == types.StrategicMergePatchType && !untyped:
		return strategicpatch.StrategicMergePatch(data, patch, obj)
	}
	return nil, fmt.Errorf("patches of type %s cannot be applied here", format)
}

// Configuration is an unstructured object to be applied. It encodes and decodes as the object that it embeds.
type Configuration struct{ *unstructured.Unstructured }

// IsApplyConfiguration marks it as one.
func (*Configuration) IsApplyConfiguration() {}
