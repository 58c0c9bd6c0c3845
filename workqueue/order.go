package workqueue

import "iter"

// Order decides which ready key is handed out next. The default, first in first out, is built into [Queue]; the others here
// are [PriorityOrder] and [FairOrder].
//
// Concurrency: a queue calls its Order under its lock. An Order is a data structure, not a callback: it must not block, and must
// not call the queue.
type Order[K comparable] interface {
	// Push takes in a key that became ready. It is not in the Order yet.
	Push(run *Ready[K])
	// Pop removes and returns the next. It is only called if Len is not 0.
	Pop() *Ready[K]
	// Touch says that a run in the Order was asked for again. Its Priority may have risen; it never falls.
	Touch(run *Ready[K])
	// Len returns the number of keys in the Order.
	Len() int
	// All yields them in any order.
	All() iter.Seq[*Ready[K]]
}

// Keeper is an [Order] that keeps keys back although they are ready: because enough like them are worked on, say. A [FairOrder]
// with limits is one.
type Keeper[K comparable] interface {
	Order[K]
	// Open says whether a key may be handed out now. Pop is only called if so.
	Open() bool
	// Done says that the work on a key is over which Pop returned.
	Done(key K)
}

// Rearrange calls change under the queue's lock: it may tell the Order what the queue does not, such as that a key may be handed
// out after all that was kept back. What is said of an Order holds for change: it must not block, and must not call the queue.
func (q *Queue[K]) Rearrange(change func()) {
	q.mu.Lock()
	defer q.mu.Unlock()
	change()
	q.wakeLocked()
}

// readyKeysLocked yields the ready keys, in queue order if there is no Order.
func (q *Queue[K]) readyKeysLocked() iter.Seq[K] {
	return func(yield func(K) bool) {
		if q.order != nil {
			for run := range q.order.All() {
				if !yield(run.Key) {
					return
				}
			}
			return
		}
		for id := range q.ready.all() {
			if !yield(q.entries.at(id).key) {
				return
			}
		}
	}
}
