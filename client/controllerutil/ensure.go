package controllerutil

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/internal/kinds"
	"github.com/flyball-dev/flyball/internal/misuse"
)

// OperationResult is what [CreateOrUpdate] or [CreateOrPatch] did.
type OperationResult string

// The results.
const (
	OperationResultNone    OperationResult = "unchanged"
	OperationResultCreated OperationResult = "created"
	OperationResultUpdated OperationResult = "updated"
)

// CreateOrUpdate reads the object that obj names into obj, calls mutate, and updates the object if mutate changed obj.
// If there is no such object, it calls mutate on obj as given and creates it. mutate must not change the name or the
// namespace; a nil mutate changes nothing. mutate should set only fields that belong to the caller: if it removes
// defaults that the server fills in, every call updates the object.
func CreateOrUpdate(ctx context.Context, c client.Client, obj client.Object,
	mutate func() error,
) (OperationResult, error) {
	return ensure(ctx, c, obj, mutate, func(client.Object) error { return c.Update(ctx, obj) })
}

// CreateOrPatch is like [CreateOrUpdate], but sends what mutate changed, the status included, by a [PatchHelper].
func CreateOrPatch(ctx context.Context, c client.Client, obj client.Object,
	mutate func() error,
) (OperationResult, error) {
	return ensure(ctx, c, obj, mutate, func(before client.Object) error {
		helper, err := NewPatchHelper(c, before)
		if err != nil {
			return err
		}
		return helper.Patch(ctx, obj)
	})
}

// ensure is the common part of CreateOrUpdate and CreateOrPatch. change writes obj, whose state was before.
func ensure(ctx context.Context, c client.Client, obj client.Object, mutate func() error,
	change func(before client.Object) error,
) (OperationResult, error) {
	if err := usable(c, obj); err != nil {
		return OperationResultNone, fmt.Errorf("create or change: %w", err)
	}
	key := client.ObjectKeyFromObject(obj)
	err := c.Get(ctx, key, obj)
	if apierrors.IsNotFound(err) {
		if err := mutated(obj, key, mutate); err != nil {
			return OperationResultNone, err
		}
		if err := c.Create(ctx, obj); err != nil {
			return OperationResultNone, err
		}
		return OperationResultCreated, nil
	}
	if err != nil {
		return OperationResultNone, err
	}
	before := obj.DeepCopyObject().(client.Object)
	if err := mutated(obj, key, mutate); err != nil {
		return OperationResultNone, err
	}
	if equality.Semantic.DeepEqual(before, obj) {
		return OperationResultNone, nil
	}
	if err := change(before); err != nil {
		return OperationResultNone, err
	}
	return OperationResultUpdated, nil
}

// usable returns an error if c or obj is nil.
func usable(c client.Client, obj client.Object) error {
	switch {
	case misuse.IsNil(c):
		return errors.New("the client is nil")
	case misuse.IsNil(obj):
		return kinds.ErrNoObject
	}
	return nil
}

// mutated calls mutate on obj, whose key must stay.
func mutated(obj client.Object, key client.ObjectKey, mutate func() error) error {
	if mutate == nil {
		return nil
	}
	if err := mutate(); err != nil {
		return err
	}
	if client.ObjectKeyFromObject(obj) != key {
		return errors.New("the mutate function must not change the object's name or namespace")
	}
	return nil
}
