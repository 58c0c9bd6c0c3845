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

// PatchHelper writes what a reconciler changed in an object. It remembers the object as it was and sends the
// difference.
//
//	helper, err := controllerutil.NewPatchHelper(c, obj)
//	…
//	defer func() { err = errors.Join(err, helper.Patch(ctx, obj)) }()
//
// It sends no request if nothing changed, one merge patch for changes outside the status, and one patch of the status
// subresource for changes of the status. The patches have only what changed, so they do not touch the fields of other
// writers.
//
// A patch could undo the changes of others where it removes a field or a key of a map, and where it changes a list
// outside the status, such as the finalizers or the owners: a merge patch replaces a list as a whole. Such a patch has
// the resource version as a precondition. Lists in the status have only one writer. Numbers are compared exactly.
type PatchHelper struct {
	client client.Client
	// before is the object as it was, without its status and without the fields that only the server writes. status is
	// its status.
	before, status map[string]any
	// known has the UID and the resource version that the server answered last.
	known metav1.ObjectMeta
}

// NewPatchHelper returns a helper that sends the changes made to obj from now on.
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

// stateOf returns the UID and the resource version of obj.
func stateOf(obj client.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{UID: obj.GetUID(), ResourceVersion: obj.GetResourceVersion()}
}

// split returns the content of obj that a writer may change, in two parts: all but the status, and the status.
func split(obj client.Object) (main, status map[string]any, err error) {
	if main, err = patches.Content(obj); err != nil {
		return nil, nil, err
	}
	status, _ = main["status"].(map[string]any)
	delete(main, "status")
	delete(main, "apiVersion") // Typed objects may lack it, and it cannot change.
	delete(main, "kind")
	if metadata, is := main["metadata"].(map[string]any); is {
		for _, servers := range []string{"resourceVersion", "generation", "managedFields", "creationTimestamp", "uid"} {
			delete(metadata, servers)
		}
	}
	return main, status, nil
}

// Patch writes what changed in obj and replaces obj by the server's answer. Further calls send what changed since.
// After an error obj is as before the call.
//
// Errors: the error of the first patch, in which case the patch of the status is not sent; the error of the second
// patch. A conflict means that the object has changed and the patch could undo changes of others: reconcile again.
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

// send sends changes as a merge patch. If bound is set, the known state is its precondition.
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

// overwrites reports whether a merge patch can undo changes of others: because it removes a field or, if lists is set,
// because it replaces a list.
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
