// Package panics reports the panics that handlers of webhooks recover to their server.
package panics

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"k8s.io/klog/v2"
)

type key struct{}

// With returns a context in which Recovered also calls count.
func With(ctx context.Context, count func()) context.Context {
	return context.WithValue(ctx, key{}, count)
}

// ErrPanic is wrapped by the errors of Recovered, whose words are controller-runtime's.
var ErrPanic = errors.New("panic")

// Recovered logs and counts a panic whose value is v, and returns an error to answer with. It must be called by the
// deferred function that recovers, so that the stack is still there.
func Recovered(ctx context.Context, v any) error {
	if count, ok := ctx.Value(key{}).(func()); ok {
		count()
	}
	err := fmt.Errorf("%w: %v [recovered]", ErrPanic, v)
	klog.FromContext(ctx).Error(err, "Webhook panicked", "stack", string(debug.Stack()))
	return err
}
