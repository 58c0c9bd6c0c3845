package reconcile

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/internal/cachecheck"
	"github.com/flyball-dev/flyball/internal/ownwrites"
	"github.com/flyball-dev/flyball/workqueue"
)

// run is one reconcile, and the context that its reconciler is called with.
type run[K comparable] struct {
	context.Context // that of work in flight, which outlives the stop signal
	controller      *Controller[K]
	entry           *entry[K]
	item            workqueue.Item[K]
	number          uint64
	// contradicted is the last answer to a request of the reconcile that contradicts a cache.
	contradicted atomic.Pointer[cachecheck.ContradictionError]
	// logger is made when it is asked for first: most reconciles of a controller at rest log nothing.
	once   sync.Once
	logger any
}

// runKey is the key under which a context has the run it belongs to.
type runKey struct{}

// reconciling is a run of whatever type of key.
type reconciling interface {
	causes() []workqueue.Cause
	name() string
}

// Value implements context.Context.
func (r *run[K]) Value(key any) any {
	switch key {
	case runKey{}:
		return r
	case ownwrites.OwnerKey{}:
		return Owner[K]{Controller: r.controller.name, Key: r.item.Key}
	case ownwrites.WakerKey{}:
		return waker[K]{r.controller.queue, r.item.Key}
	case ownwrites.ContradictionKey{}:
		return r.contradicted.Store
	case loggerKey:
		r.once.Do(func() {
			r.logger = r.Context.Value(loggerKey)
			if logger, ok := r.logger.(klog.Logger); ok {
				r.logger = logger.WithValues("controller", r.controller.name, "key", r.entry.key, "reconcileID", r.id())
			}
		})
		return r.logger
	}
	return r.Context.Value(key)
}

func (r *run[K]) id() string { return r.controller.name + "-" + strconv.FormatUint(r.number, 10) }

func (r *run[K]) causes() []workqueue.Cause { return r.item.Causes }

func (r *run[K]) name() string { return fmt.Sprintf("%s %v", r.controller.name, r.item.Key) }

// loggerKey is the key under which contexts have their logger. It is not exported where it is declared, so it is
// found by asking.
var loggerKey = func() (key any) {
	klog.FromContext(asked{context.Background(), &key})
	return key
}()

// asked is a context that notes which key it was asked for.
type asked struct {
	context.Context
	key *any
}

func (a asked) Value(key any) any {
	*a.key = key
	return nil
}

// Owner is the owner, as package client means it, of what the reconciles of one key write.
type Owner[K comparable] struct {
	Controller string
	Key        K
}

// Causes returns why the reconcile that ctx belongs to was called: what was put into the queue for its key since it
// last ran, oldest first, bounded in length. It returns nil outside a reconcile. The slice is the queue's: it is
// valid until the reconcile returns.
func Causes(ctx context.Context) []workqueue.Cause {
	if r, ok := ctx.Value(runKey{}).(reconciling); ok {
		return r.causes()
	}
	return nil
}

// current names the reconcile that ctx belongs to; "" outside of one.
func current(ctx context.Context) string {
	if r, ok := ctx.Value(runKey{}).(reconciling); ok {
		return r.name()
	}
	return ""
}

// waker runs a key again that acted on an own write which a cache never showed. Others changed or deleted the object
// before the watch brought it, so no event reports it: it is the one change that level-triggering cannot see.
//
// It is of one controller. The one that takes its place, in the next tenure of the process, say, reconciles all keys
// anew; each that then reads the same write is woken by its own.
type waker[K comparable] struct {
	queue *workqueue.Queue[K]
	key   K
}

// Wake implements [ownwrites.Waker].
func (w waker[K]) Wake(m ownwrites.Missed) {
	cause := workqueue.Cause{Source: m.Resource.String(), Event: "Missed", Object: m.Key.String(), Time: time.Now()}
	w.queue.AddWithCause(w.key, cause)
}
