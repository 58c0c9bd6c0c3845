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

// OperationResult is what was done to an object.
type OperationResult string

// What can have been done.
const (
	OperationResultNone    OperationResult = "unchanged"
	OperationResultCreated OperationResult = "created"
	OperationResultUpdated OperationResult = "updated"
)

// CreateOrUpdate makes the object that obj names what mutate makes of obj: it is created, updated if mutate changes
// it, or left alone. mutate is called with the state that was read, or with the object as given if there is none, and
// must not change its name or namespace; nil changes nothing. Defaults that the server fills in and mutate removes
// again cause an update each time: set only what is yours.
func CreateOrUpdate(ctx context.Context, c client.Client, obj client.Object,
	mutate func() error,
) (OperationResult, error) {
	return ensure(ctx, c, obj, mutate, func(client.Object) error { return c.Update(ctx, obj) })
}

// CreateOrPatch is [CreateOrUpdate] that sends what mutate changed, status included, by a [PatchHelper].
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

// usable reports what of a helper's arguments is nil.
func usable(c client.Client, obj client.Object) error {
	switch {
	case misuse.IsNil(c):
		return errors.New("the client is nil")
	case misuse.IsNil(obj):
		return kinds.ErrNoObject
	}
	return nil
}

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
