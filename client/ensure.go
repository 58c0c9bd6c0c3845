package client

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

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

// MutateFn makes an object what it should be. It is called with the state that was read, or with the object as given
// if there is none, and must not change its name or namespace. Nil changes nothing.
type MutateFn func() error

// CreateOrUpdate makes the object that obj names what mutate makes of obj: it is created, updated if mutate changes
// it, or left alone. Defaults that the server fills in and mutate removes again cause an update each time: set only
// what is yours.
func CreateOrUpdate(ctx context.Context, c Client, obj Object, mutate MutateFn) (OperationResult, error) {
	return ensure(ctx, c, obj, mutate, func(Object) error { return c.Update(ctx, obj) })
}

// CreateOrPatch is [CreateOrUpdate] that sends what mutate changed, status included, by a [PatchHelper].
func CreateOrPatch(ctx context.Context, c Client, obj Object, mutate MutateFn) (OperationResult, error) {
	return ensure(ctx, c, obj, mutate, func(before Object) error {
		helper, err := NewPatchHelper(c, before)
		if err != nil {
			return err
		}
		return helper.Patch(ctx, obj)
	})
}

func ensure(ctx context.Context, c Client, obj Object, mutate MutateFn,
	change func(before Object) error,
) (OperationResult, error) {
	if err := usable(c, obj); err != nil {
		return OperationResultNone, fmt.Errorf("create or change: %w", err)
	}
	key := ObjectKeyFromObject(obj)
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
	before := obj.DeepCopyObject().(Object)
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
func usable(c Client, obj Object) error {
	switch {
	case misuse.IsNil(c):
		return errors.New("the client is nil")
	case misuse.IsNil(obj):
		return errNoObject
	}
	return nil
}

func mutated(obj Object, key ObjectKey, mutate MutateFn) error {
	if mutate == nil {
		return nil
	}
	if err := mutate(); err != nil {
		return err
	}
	if ObjectKeyFromObject(obj) != key {
		return errors.New("the function that makes the object what it should be must not change its name or namespace")
	}
	return nil
}

// conflictRetries is how often RetryOnConflict tries.
const conflictRetries = 8

// RetryOnConflict reads obj from the server, lets mutate change it and updates it, and begins again when somebody was
// faster. An error of mutate ends it. It is for what has to be written now; a reconciler returns the conflict
// instead.
//
// Errors: the last conflict, after some tries with growing pauses; all others at once.
func RetryOnConflict(ctx context.Context, c Client, obj Object, mutate MutateFn) error {
	if err := usable(c, obj); err != nil {
		return fmt.Errorf("retry on conflict: %w", err)
	}
	key := ObjectKeyFromObject(obj)
	for try := 0; ; try++ {
		if err := c.Get(ctx, key, obj, Live); err != nil {
			return err
		}
		if err := mutated(obj, key, mutate); err != nil {
			return err
		}
		err := c.Update(ctx, obj)
		if !apierrors.IsConflict(err) || try == conflictRetries {
			return err
		}
		pause := time.NewTimer(10 * time.Millisecond << try)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return fmt.Errorf("%w, after %w", context.Cause(ctx), err)
		}
	}
}
