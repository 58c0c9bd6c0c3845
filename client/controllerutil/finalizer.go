package controllerutil

import (
	"context"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/internal/kinds"
)

// ContainsFinalizer reports whether obj has the finalizer.
func ContainsFinalizer(obj metav1.Object, finalizer string) bool {
	return slices.Contains(obj.GetFinalizers(), finalizer)
}

// AddFinalizer adds the finalizer to obj and reports whether that changed obj. It sends no request.
func AddFinalizer(obj metav1.Object, finalizer string) (changed bool) {
	if ContainsFinalizer(obj, finalizer) {
		return false
	}
	obj.SetFinalizers(append(slices.Clone(obj.GetFinalizers()), finalizer))
	return true
}

// RemoveFinalizer removes the finalizer from obj and reports whether that changed obj. It sends no request.
func RemoveFinalizer(obj metav1.Object, finalizer string) (changed bool) {
	if !ContainsFinalizer(obj, finalizer) {
		return false
	}
	obj.SetFinalizers(
		slices.DeleteFunc(slices.Clone(obj.GetFinalizers()), func(f string) bool { return f == finalizer }),
	)
	return true
}

// Finalize adds a finalizer to obj, or cleans up and removes the finalizer. It reports whether obj is being deleted; if
// so, the reconciler has nothing else to do.
//
//   - If obj is being deleted and has the finalizer, it calls cleanup and, if that succeeds, removes the finalizer.
//   - If obj is being deleted and does not have the finalizer, it does nothing. The server would not accept a new one.
//   - If obj is not being deleted, it adds the finalizer. Create what cleanup removes only after that.
//
// cleanup may be nil if obj is not being deleted.
//
// The writes fail with a conflict if obj is not the newest state, so that finalizers of others are never lost.
func Finalize(ctx context.Context, c client.Client, obj client.Object, finalizer string,
	cleanup func(ctx context.Context) error,
) (deleting bool, err error) {
	if err := usable(c, obj); err != nil {
		return false, fmt.Errorf("finalize: %w", err)
	}
	key := client.ObjectKeyFromObject(obj)
	if finalizer == "" {
		return false, fmt.Errorf(`finalize %s: give the finalizer a name like "example.com/cleanup"`, key)
	}
	before := obj.DeepCopyObject().(client.Object)
	patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
	deleting = obj.GetDeletionTimestamp() != nil
	if deleting {
		if !ContainsFinalizer(obj, finalizer) {
			return true, nil
		}
		if cleanup == nil {
			return true, fmt.Errorf("finalize %s: the object is being deleted, and the cleanup function is nil", key)
		}
		if err := cleanup(ctx); err != nil {
			return true, fmt.Errorf("clean up %s: %w", key, err)
		}
		RemoveFinalizer(obj, finalizer)
		err = client.IgnoreNotFound(c.Patch(ctx, obj, patch))
	} else if AddFinalizer(obj, finalizer) {
		err = c.Patch(ctx, obj, patch)
	}
	if err != nil {
		kinds.Set(obj, before)
		return deleting, fmt.Errorf("write finalizer of %s: %w", key, err)
	}
	return deleting, nil
}
