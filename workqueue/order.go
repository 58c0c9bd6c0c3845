package workqueue

import (
	"cmp"
	"time"

	"github.com/flyball-dev/flyball/workqueue/internal/order"
)

// Order decides which ready key is handed out next. [NewPriorityOrder] and [NewFairOrder] return one. A user cannot
// write another one: a queue calls its Order with the lock held, where it must not run a user's code. A queue without
// an Order is first in, first out, with a second lane for keys of negative priority; see lanes.go.
type Order[K comparable] struct{ ready order.Order[K] }

// PriorityOptions configures a [NewPriorityOrder].
type PriorityOptions struct {
	// Age is the waiting time that counts as one step of priority. Zero means 100 ms; a negative Age counts as 1 ns.
	Age time.Duration
}

// NewPriorityOrder returns an Order that hands out keys of higher priority first, and keys of equal priority first
// in, first out. Keys age: a key of priority p that became ready at t comes before all keys of priority p+n that
// become ready after t + n·Age. So a key of high priority overtakes keys of low priority, but the time by which it
// delays them is bounded.
func NewPriorityOrder[K comparable](o PriorityOptions) *Order[K] {
	return &Order[K]{order.NewPriority[K](cmp.Or(o.Age, 100*time.Millisecond))}
}

// FairOptions configures a [NewFairOrder].
type FairOptions[K comparable] struct {
	// Group names the group of a key, for example its namespace. It must be a pure function of the key. The methods
	// that add a key call it, without a lock held. Nil puts all keys in one group.
	Group func(key K) string
	// Within orders the keys of one group by priority. Nil means first in, first out.
	Within *PriorityOptions
	// GroupLimit is the most keys of one group that are processed at once. Further keys of the group are held back,
	// and no other group waits for them. Zero means no limit.
	GroupLimit int
	// Limit is the most keys that are processed at once, not counting those whose slot was released; see
	// [Queue.Release]. Zero means no limit.
	Limit int
}

// NewFairOrder returns an Order that takes one key of each group in turn, so that one group's storm does not delay
// another group's single key: with g groups waiting, a group's first key is handed out after at most g-1 others.
func NewFairOrder[K comparable](o FairOptions[K]) *Order[K] {
	var within func() order.Order[K]
	if o.Within != nil {
		within = func() order.Order[K] { return NewPriorityOrder[K](*o.Within).ready }
	}
	return &Order[K]{order.NewFair(o.Group, within, order.Limits{PerGroup: o.GroupLimit, All: o.Limit})}
}

// Release frees the slot of FairOptions.Limit that a key in processing takes, so that another key can be processed in
// the meantime. Use it for work that takes long because it waits for something. The key still counts for
// FairOptions.GroupLimit. Release of a key that is not being processed, or in a queue without limits, does nothing.
func (q *Queue[K]) Release(key K) {
	if q.ready.limits == nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	if place := q.placeLocked(key); place != none {
		q.ready.limits.Release(&q.processing[place].run.Run)
		q.wakeLocked()
	}
}
