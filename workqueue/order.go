package workqueue

import "iter"

// Order decides which ready key is handed out next. The default, first in first out, is built into [Queue]; the others
// here are [PriorityOrder] and [FairOrder].
//
// Concurrency: a queue calls its Order with the queue's lock held. An Order is a data structure, not a callback: it
// must not block and must not call the queue.
type Order[K comparable] interface {
	// Push adds a key that became ready. The key is not yet in the Order.
	Push(run *Ready[K])
	// Pop removes and returns the next key. The queue calls it only if Len is not 0.
	Pop() *Ready[K]
	// Touch is called when a key in the Order is added again. Its Priority may have risen; it never falls.
	Touch(run *Ready[K])
	// Len returns the number of keys in the Order.
	Len() int
	// All yields the keys in any order.
	All() iter.Seq[*Ready[K]]
}

// Keeper is an [Order] that can hold back ready keys, for example to limit how many keys of a group are processed at
// once. A [FairOrder] with limits is one.
type Keeper[K comparable] interface {
	Order[K]
	// Open reports whether a key may be handed out now. The queue calls Pop only if it returns true.
	Open() bool
	// Done is called when the processing of a key that Pop returned is finished.
	Done(key K)
}

// Rearrange calls change with the queue's lock held, and then wakes a worker if a key may be handed out. Use it to
// change the Order from outside, for example to release a key that was held back. The rules of [Order] hold for change:
// it must not block and must not call the queue.
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
