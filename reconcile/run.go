package reconcile

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/workqueue"
)

// run is what the context of a reconcile knows about it.
type run struct {
	controller string
	key        any
	causes     []workqueue.Cause
	// contradicted has what [Contradicted] was told last.
	contradicted *atomic.Pointer[informer.ContradictionError]
}

type runKey struct{}

// Owner is the owner, as package client means it, of what the reconciles of one key write.
type Owner[K comparable] struct {
	Controller string
	Key        K
}

// Causes tells why the reconcile that ctx belongs to was called: what was put into the queue for its key
// since it last ran, oldest first, bounded in length. Nil outside a reconcile. The slice is the queue's: it
// is valid until the reconcile returns.
func Causes(ctx context.Context) []workqueue.Cause {
	r, _ := ctx.Value(runKey{}).(run)
	return r.causes
}

// current names the reconcile that ctx belongs to; "" outside of one.
func current(ctx context.Context) string {
	r, ok := ctx.Value(runKey{}).(run)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%s %v", r.controller, r.key)
}
