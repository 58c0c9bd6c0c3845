package patches

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/jsonpatch"
)

// Applied returns the JSON of obj after a patch. data is the JSON before it. Apply patches are not supported, nor are
// strategic merge patches of unstructured objects.
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
