package workqueue

import (
	"iter"

	"github.com/flyball-dev/flyball/workqueue/internal/order"
)

// ready is the set of keys that wait for a worker.
type ready[K comparable] struct {
	// order is the queue's Order, which holds the keys; nil if the queue has none. Then they are in lanes.
	order order.Order[K]
	lanes lanes[K]
	// limits is order if that has concurrency limits; otherwise nil.
	limits order.Limiter[K]
}

func (r *ready[K]) push(e handle[K]) {
	if r.order != nil {
		r.order.Push(&e.run.Run)
	} else {
		r.lanes.push(e.id, e.run)
	}
}

// pop removes the next key and returns the id of its entry. It must not be called unless canPop.
func (r *ready[K]) pop() uint32 {
	if r.order != nil {
		return r.order.Pop().ID
	}
	return r.lanes.pop()
}

// canPop reports whether a key can be handed out. Concurrency limits can hold back every ready key.
func (r *ready[K]) canPop() bool {
	switch {
	case r.order == nil:
		return r.lanes.len() > 0
	case r.limits == nil:
		return r.order.Len() > 0
	default:
		return r.limits.CanPop()
	}
}

// len returns the number of ready keys, including those that limits hold back.
func (r *ready[K]) len() int {
	if r.order != nil {
		return r.order.Len()
	}
	return r.lanes.len()
}

// touch is called when the priority of a key in the set may have risen; before is the old priority. It moves the key to
// where it now belongs.
func (r *ready[K]) touch(next *run[K], before int) {
	switch {
	case r.order != nil:
		r.order.Touch(&next.Run)
	case before < 0 && next.Priority >= 0:
		r.lanes.raise(next)
	}
}

// all yields the ids of the entries. Without an Order it yields the normal lane and then the low lane, each in queue
// order.
func (r *ready[K]) all() iter.Seq[uint32] {
	if r.order == nil {
		return r.lanes.all()
	}
	return func(yield func(uint32) bool) {
		r.order.All()(func(next *order.Run[K]) bool { return yield(next.ID) })
	}
}
