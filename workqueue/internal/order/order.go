package order

import (
	"iter"
	"time"
)

// Run is a run of a key, as an [Order] sees it.
type Run[K comparable] struct {
	// Key is the key to run, and Group its group if the Order is a [Grouper]. An Order must not change them.
	Key   K
	Group string
	// Priority is the highest priority that the key was added with.
	Priority int
	// Since is when the key became ready, as the time since the queue was made.
	Since time.Duration
	// Place is for the Order that holds the run, which needs it to find the run when the priority rises. In a queue
	// without an Order, it is for the lane of low priority.
	Place int
	// Released reports whether the run was handed out and no longer takes a slot of the limit.
	Released bool
	// ID belongs to the queue.
	ID uint32
}

// Order holds the ready keys of a queue.
type Order[K comparable] interface {
	// Push adds a run, whose key became ready. The run must not be in the Order.
	Push(run *Run[K])
	// Pop removes and returns the next run. It must not be called if Len is 0 or, on a [Limiter], CanPop is false.
	Pop() *Run[K]
	// Touch is called when the Priority of a run in the Order may have risen; it never falls. It moves the run to where
	// it now belongs.
	Touch(run *Run[K])
	// Len returns the number of runs in the Order.
	Len() int
	// All yields the runs in any order.
	All() iter.Seq[*Run[K]]
}

// Limiter is an [Order] with concurrency limits: it can hold keys back although they are ready.
type Limiter[K comparable] interface {
	Order[K]
	// CanPop reports whether the limits let a key be handed out now.
	CanPop() bool
	// Done frees the slot of a run that Pop returned, because the run is over.
	Done(run *Run[K])
	// Release frees the slot of a run that continues.
	Release(run *Run[K])
}

// Grouper is an [Order] of groups.
type Grouper[K comparable] interface {
	Order[K]
	// GroupOf returns the function that names the group of a key. The queue calls that function before it takes its
	// lock, and stores the name in Run.Group.
	GroupOf() func(key K) string
}
