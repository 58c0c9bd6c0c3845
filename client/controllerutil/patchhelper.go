package controllerutil

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/internal/kinds"
	"github.com/flyball-dev/flyball/client/internal/patches"
	"github.com/flyball-dev/flyball/internal/misuse"
)

// PatchHelper writes what a reconciler changed in an object: it keeps the object as it was before, and sends the
// difference at the end.
//
//	helper, err := controllerutil.NewPatchHelper(c, obj)
//	…
//	defer func() { err = errors.Join(err, helper.Patch(ctx, obj)) }()
//
// Nothing changed costs no call; a change of anything but status one merge patch; a change of status one patch of the
// status subresource; both, both. The patch holds nothing but what changed, so writers of other fields are left
// alone. Where it removes a field or a key of a map, it demands that the object is still the one that was read: else
// it could remove what somebody put there since. The same where it changes a list outside of status, as the
// finalizers and the owners: a list is replaced as a whole, with all that others have added. Lists of status belong
// to who writes it. Numbers are compared exactly.
type PatchHelper struct {
	client client.Client
	// before is the object as it was, without status and what only the server writes; status is its status.
	before, status map[string]any
	// known is the state of the object that the server told last.
	known metav1.ObjectMeta
}

// NewPatchHelper takes the picture of obj that changes are measured against.
func NewPatchHelper(c client.Client, obj client.Object) (*PatchHelper, error) {
	if err := usable(c, obj); err != nil {
		return nil, fmt.Errorf("patch helper: %w", err)
	}
	before, status, err := split(obj)
	if err != nil {
		return nil, fmt.Errorf("patch helper: %w", err)
	}
	return &PatchHelper{client: c, before: before, status: status, known: stateOf(obj)}, nil
}

func stateOf(obj client.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion()}
}

// split encodes an object, exactly, as what a writer may change but its status, and the status.
func split(obj client.Object) (main, status map[string]any, err error) {
	if main, err = patches.Content(obj); err != nil {
		return nil, nil, err
	}
	status, _ = main["status"].(map[string]any)
	delete(main, "status")
	delete(main, "apiVersion") // Not every Go value says it, and it cannot change.
	delete(main, "kind")
	if metadata, is := main["metadata"].(map[string]any); is {
		for _, servers := range []string{"resourceVersion", "generation", "managedFields", "creationTimestamp", "uid"} {
			delete(metadata, servers)
		}
	}
	return main, status, nil
}

// Patch writes the difference between obj and the picture. Then obj is what the server answered, and the picture too:
// Patch may be called again. After an error obj is as the caller made it.
//
// Errors: of the patch, and then the status was not sent; of the status. A conflict where something was removed from
// an object that others have changed: reconcile again.
func (h *PatchHelper) Patch(ctx context.Context, obj client.Object) error {
	if misuse.IsNil(obj) {
		return fmt.Errorf("patch: %w", kinds.ErrNoObject)
	}
	main, status, err := split(obj)
	if err != nil {
		return fmt.Errorf("patch %s: %w", obj.GetName(), err)
	}
	answer := obj.DeepCopyObject().(client.Object)
	sent := false
	if changes := patches.Difference(h.before, main); len(changes) > 0 {
		if err := h.send(changes, overwrites(changes, true),
			func(p client.Patch) error { return h.client.Patch(ctx, answer, p) }); err != nil {
			return fmt.Errorf("patch %s: %w", obj.GetName(), err)
		}
		h.before, h.known, sent = main, stateOf(answer), true
	}
	if changes := patches.Difference(h.status, status); len(changes) > 0 {
		err := h.send(map[string]any{"status": changes}, overwrites(changes, false),
			func(p client.Patch) error { return h.client.Status().Patch(ctx, answer, p) })
		if err != nil {
			return fmt.Errorf("patch status of %s: %w", obj.GetName(), err)
		}
		sent = true
	}
	if !sent {
		return nil
	}
	kinds.Set(obj, answer)
	h.known = stateOf(obj)
	h.before, h.status, err = split(obj)
	return err
}

// HasChanges reports whether Patch would send anything.
func (h *PatchHelper) HasChanges(obj client.Object) (bool, error) {
	main, status, err := split(obj)
	return len(patches.Difference(h.before, main))+len(patches.Difference(h.status, status)) > 0, err
}

// send encodes changes, bound to the known state where they must be, and patches with them.
func (h *PatchHelper) send(changes map[string]any, bound bool, patch func(client.Patch) error) error {
	if bound {
		patches.OnlyAt(&h.known, changes)
	}
	data, err := json.Marshal(changes)
	if err != nil {
		return err
	}
	return patch(client.RawPatch(types.MergePatchType, data))
}

// overwrites reports whether a merge patch can undo what others wrote: it removes something or, with lists, replaces
// a list.
func overwrites(patch map[string]any, lists bool) bool {
	for _, value := range patch {
		switch value := value.(type) {
		case nil:
			return true
		case []any:
			if lists {
				return true
			}
		case map[string]any:
			if overwrites(value, lists) {
				return true
			}
		}
	}
	return false
}
