package reconcile

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/internal/trace"
	"github.com/flyball-dev/flyball/reconcile/internal/ctxkey"
	"github.com/flyball-dev/flyball/reconcile/internal/waker"
	"github.com/flyball-dev/flyball/workqueue"
	"github.com/flyball-dev/flyball/writes"
)

// run is one reconcile, and the context that its reconciler is called with.
type run[K comparable] struct {
	context.Context // the context of the workers, which is still alive after the stop signal
	controller      *engine[K]
	entry           *entry[K]
	item            workqueue.Item[K]
	number          uint64
	began           trace.Place // where the trace has the beginning
	// contradicted is the last contradiction between the server and a cache during the reconcile, or nil.
	contradicted atomic.Pointer[writes.ContradictionError]
	// logger is made at its first use, because most reconciles log nothing.
	once   sync.Once
	logger any
}

// Subject returns the name of a key in traces.
func (c *engine[K]) Subject(key K) trace.Subject {
	if r, ok := any(&key).(*Request); ok {
		return trace.Subject{Controller: c.name, Namespace: r.Namespace, Name: r.Name}
	}
	return trace.KeyOf(c.name, &key)
}

// runKey is the context key of the run.
type runKey struct{}

// Value implements context.Context.
func (r *run[K]) Value(key any) any {
	switch key {
	case runKey{}:
		return r
	case writes.OwnerKey:
		return owner[K]{controller: r.controller.name, key: r.item.Key}
	case writes.WakerKey:
		return waker.Waker[K]{Queue: r.controller.queue, Key: r.item.Key}
	case ctxkey.Name{}:
		return fmt.Sprintf("%s %v", r.controller.name, r.item.Key)
	case writes.ContradictionKey:
		return r.contradicted.Store
	case trace.RunKey{}:
		if c := r.controller; c.trace != nil {
			return &trace.Run{Recorder: c.trace, Key: c.Subject(r.item.Key), Number: r.number}
		}
		return nil
	case ctxkey.Logger:
		r.once.Do(func() {
			r.logger = r.Context.Value(ctxkey.Logger)
			if logger, ok := r.logger.(klog.Logger); ok {
				logger = logger.WithValues("key", r.entry.key, "reconcileID", r.id()) // Run has added the controller.
				if traced := trace.RunFrom(r); traced != nil {
					logger = traced.Logger(logger)
				}
				r.logger = logger
			}
		})
		return r.logger
	}
	return r.Context.Value(key)
}

func (r *run[K]) id() string                { return r.controller.name + "-" + strconv.FormatUint(r.number, 10) }
func (r *run[K]) causes() []workqueue.Cause { return r.item.Causes }

// owner identifies a key of a controller as the owner of its writes, for package client.
type owner[K comparable] struct {
	controller string
	key        K
}

// Causes returns the causes of the reconcile that ctx belongs to: why its key was queued since it last ran, oldest
// first. The list is bounded. It returns nil outside of a reconcile. The slice belongs to the queue, and is valid until
// the reconcile returns.
func Causes(ctx context.Context) []workqueue.Cause {
	if r, ok := ctx.Value(runKey{}).(interface{ causes() []workqueue.Cause }); ok {
		return r.causes()
	}
	return nil
}
