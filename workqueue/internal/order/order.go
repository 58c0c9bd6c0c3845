package order

import (
	"iter"
	"time"
)

// Run is a run of a key that was asked for, as an [Order] sees it.
type Run[K comparable] struct {
	// Key is the key to run, and Group its group, of a [Fair]. An Order must not change them.
	Key   K
	Group string
	// Priority is the highest of those the run was asked for with.
	Priority int
	// Since is when the key became ready, as the time since the queue was made.
	Since time.Duration
	// Place belongs to the Order the run is in, to find the run again when its priority rises. In a queue without an
	// Order it belongs to the lane of low priority.
	Place int
	// Released: the run is handed out and takes no slot of the limit any more.
	Released bool
	// ID belongs to the queue.
	ID uint32
}

// Order holds the ready keys of a queue.
type Order[K comparable] interface {
	// Push takes in a key that became ready. It is not in the Order yet.
	Push(run *Run[K])
	// Pop removes and returns the next. It is only called if Len is not 0, and if the order, if it is a Limiter, is
	// open.
	Pop() *Run[K]
	// Touch reports that a run in the Order was asked for again. Its Priority may have risen; it never falls.
	Touch(run *Run[K])
	// Len returns the number of keys in the Order.
	Len() int
	// All yields them in any order.
	All() iter.Seq[*Run[K]]
}

// Limiter is an [Order] with concurrency limits: it holds keys back although they are ready.
type Limiter[K comparable] interface {
	Order[K]
	// CanPop reports whether the limits let a key be handed out now.
	CanPop() bool
	// Done reports that the work on a run is over which Pop returned.
	Done(run *Run[K])
	// Release frees the slot of a run that goes on.
	Release(run *Run[K])
}

// Grouper is an [Order] of groups.
type Grouper[K comparable] interface {
	Order[K]
	// GroupOf returns the function that names the group of a key. The queue calls it, before it takes its lock, and
	// puts the answer into Run.Group.
	GroupOf() func(key K) string
}
