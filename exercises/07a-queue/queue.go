// Package queue is task 07a: a work queue that holds each key once and never gives a key to two workers at once.
//
// Build the queue of chapter 7 from three fields: a slice with the waiting keys in order, and two sets, dirty and
// processing. About 80 lines are enough.
//
// The contract:
//
//   - Add puts a key into the queue. It never blocks. A key that already waits is not put in a second time.
//   - Get takes the key that has waited longest. If there is none, it waits.
//   - A key that is added while a worker has it waits for that worker's Done. It is then handed out once more, however
//     often it was added.
//   - Done ends the work on a key. It does nothing for a key that no worker has.
//   - ShutDown ends the intake: later Adds do nothing. The remaining keys are still handed out, including those that
//     were added again while a worker had them. When no key waits, Get returns false at once.
//
// Any number of goroutines call these methods at the same time, so a mutex guards the fields. Get waits for a
// sync.Cond: its Wait unlocks the mutex, sleeps until Signal or Broadcast, and locks the mutex again.
//
// Begin with the first test: give Queue its fields, make them in New, and write Add and Get for one worker.
package queue

// Queue hands keys to workers.
type Queue[K comparable] struct{}

// New returns an empty queue.
func New[K comparable]() *Queue[K] {
	return &Queue[K]{}
}

// Add puts a key into the queue.
func (q *Queue[K]) Add(key K) {
	panic("not written yet: Add")
}

// Get takes the next key. It waits for one, or returns false if the queue is shut down and no key waits.
func (q *Queue[K]) Get() (key K, ok bool) {
	panic("not written yet: Get")
}

// Done ends the work on a key.
func (q *Queue[K]) Done(key K) {
	panic("not written yet: Done")
}

// Len returns how many keys wait. Keys that workers have do not count.
func (q *Queue[K]) Len() int {
	panic("not written yet: Len")
}

// ShutDown ends the intake.
func (q *Queue[K]) ShutDown() {
	panic("not written yet: ShutDown")
}
