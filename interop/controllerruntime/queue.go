package controllerruntime

import (
	"context"
	"sync"
	"time"

	peer "k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"

	own "github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/workqueue"
)

// NewQueue is for [sigs.k8s.io/controller-runtime/pkg/controller.Options].NewQueue. It replaces controller-runtime's
// priority queue with Flyball's queue. Priorities still work, and keys age: a key of a low priority is served within a
// time that can be computed (see [workqueue.NewPriorityOrder]). The metrics are controller-runtime's own.
//
//	controller.Options{NewQueue: controllerruntime.NewQueue[reconcile.Request]}
func NewQueue[T comparable](name string, limiter peer.TypedRateLimiter[T]) peer.TypedRateLimitingInterface[T] {
	return NewQueueWithOrder(name, limiter, workqueue.NewPriorityOrder[T](workqueue.PriorityOptions{}))
}

// NewQueueWithOrder is NewQueue with an order of the caller's: [workqueue.NewFairOrder] by namespace, say.
func NewQueueWithOrder[T comparable](name string, limiter peer.TypedRateLimiter[T],
	order *workqueue.Order[T],
) priorityqueue.PriorityQueue[T] {
	return newQueue(limiter, workqueue.Options[T]{Name: name, Order: order, MaxCauses: -1})
}

func newQueue[T comparable](limiter peer.TypedRateLimiter[T], o workqueue.Options[T]) *queue[T] {
	if limiter == nil {
		// Source: controller-runtime v0.25.2 pkg/controller/priorityqueue, New.
		limiter = workqueue.NewExponentialRateLimiter[T](workqueue.ExponentialOptions{})
	}
	q := &queue[T]{limiter: limiter}
	q.ctx, q.cancel = context.WithCancel(context.Background())
	o.Metrics = metricsOf(o.Name, &q.gauges)
	q.core = workqueue.New(o)
	q.gauges.start()
	return q
}

// queue implements controller-runtime's PriorityQueue with Flyball's queue.
//
// The contract is that of controller-runtime v0.25.2 pkg/controller/priorityqueue. A key has one entry, with the
// highest of its priorities and the earliest of its delays. A Get of the key ends its delay. Shutting down drops what
// is queued. There are two differences: Len includes an added key at once, and a queue may be shut down more than once.
type queue[T comparable] struct {
	core    *workqueue.Queue[T]
	limiter peer.TypedRateLimiter[T]
	gauges  gauges
	// ctx ends with ShutDown, so that no key is returned after that. It is the queue's lifetime, not a call's.
	ctx    context.Context
	cancel context.CancelFunc
	stop   sync.Once
}

var _ priorityqueue.PriorityQueue[string] = (*queue[string])(nil)

// AddWithOpts adds items, after the shorter of the requested delay and the limiter's.
func (q *queue[T]) AddWithOpts(o priorityqueue.AddOpts, items ...T) {
	if q.ShuttingDown() {
		return
	}
	why := workqueue.Cause{}
	switch {
	case o.RateLimited:
		why.Event = own.WhyRetry
	case o.After > 0:
		why.Event = "RequeueAfter"
	}
	for _, item := range items {
		after := o.After
		if o.RateLimited {
			if wait := q.limiter.When(item); after == 0 || wait < after {
				after = wait
			}
		}
		if after > 0 {
			q.gauges.retry()
		}
		q.core.AddWith(item,
			workqueue.AddOptions{After: after, Requeue: true, Earliest: true, Priority: o.Priority, Cause: why})
	}
}

// GetWithPriority waits for a key.
func (q *queue[T]) GetWithPriority() (key T, priority int, shutdown bool) {
	item, err := q.core.Get(q.ctx)
	return item.Key, item.Priority, err != nil
}

// Get waits for a key.
func (q *queue[T]) Get() (key T, shutdown bool) {
	key, _, shutdown = q.GetWithPriority()
	return key, shutdown
}

func (q *queue[T]) Add(item T) { q.AddWithOpts(priorityqueue.AddOpts{}, item) }

func (q *queue[T]) AddAfter(item T, d time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: d}, item)
}

func (q *queue[T]) AddRateLimited(item T) {
	q.AddWithOpts(priorityqueue.AddOpts{RateLimited: true}, item)
}

func (q *queue[T]) Done(item T)            { q.core.Done(item) }
func (q *queue[T]) Forget(item T)          { q.limiter.Forget(item) }
func (q *queue[T]) NumRequeues(item T) int { return q.limiter.NumRequeues(item) }
func (q *queue[T]) ShuttingDown() bool     { return q.ctx.Err() != nil || q.core.ShuttingDown() }

// Len returns the number of ready keys. It includes keys that were added again while they were worked on.
func (q *queue[T]) Len() int {
	s := q.core.Stats()
	return s.Depth + s.Again
}

// ShutDown makes every Get return, and drops what is queued. It may be called again.
func (q *queue[T]) ShutDown() {
	q.stop.Do(func() {
		q.cancel()
		q.core.ShutDown()
		q.gauges.stop()
	})
}

// ShutDownWithDrain shuts down when all keys that are ready or being worked on are done.
func (q *queue[T]) ShutDownWithDrain() {
	_ = q.core.Drain(q.ctx) // It fails if ShutDown is called in the meantime, which is allowed.
	q.ShutDown()
}
