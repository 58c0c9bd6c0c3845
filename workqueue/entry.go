package workqueue

import "github.com/flyball-dev/flyball/workqueue/internal/delayheap"

// entry is everything the queue knows about one key. Each key has at most one.
type entry[K comparable] struct {
	key K

	// run describes the key's next run. It is nil if there is nothing to describe: the run has neither cause nor
	// priority, and the queue has no Order.
	//
	// Invariant: nil if no run is wanted.
	run *run[K]

	// place is the key's place in Queue.processing; none if no worker has the key.
	place int32

	// delays are the places of the key's pending delays in Queue.delayed, by kind; none where no delay is pending.
	//
	// Invariant: dirty implies delays[requeueDelay] == none. A requeue delay is cancelled as soon as a run is certain.
	delays [delayKinds]int32

	// attempt counts the AddRateLimited calls since the last Forget. It stops at the maximum of its type.
	attempt uint16

	// dirty: the key was added, and no run has begun since.
	dirty bool

	// retired: the entry's id is in table.retired.
	retired bool
}

// none is the place of an element that is not in a list.
const none = delayheap.None

// processing reports whether a worker has the key.
func (e *entry[K]) processing() bool { return e.place != none }

// ready reports whether the key is in Queue.ready.
func (e *entry[K]) ready() bool { return e.dirty && !e.processing() }

// wanted reports whether a run of the key is due, now or after a delay.
func (e *entry[K]) wanted() bool {
	return e.dirty || e.delays[scheduledAdd] != none || e.delays[requeueDelay] != none
}

// idle reports whether the entry holds nothing but its key.
func (e *entry[K]) idle() bool { return !e.processing() && !e.wanted() }

// handle is an entry together with its id. Lists refer to entries by id rather than by pointer: ids take half the
// memory, and the garbage collector does not scan them.
type handle[K comparable] struct {
	*entry[K]
	id uint32
}
