// Package queue is task 07a: a work queue that holds each key once and never gives a key to two workers at once.
//
// Build the queue of chapter 7 from three fields: a slice that holds the order of the keys that wait, and two sets,
// dirty and processing. About 80 lines are enough.
//
// The contract:
//
//   - Add puts a key into the queue. It never blocks. A key that waits already is not put in a second time.
//   - Get takes the key that has waited longest. It waits if there is none.
//   - A key that is added while a worker has it waits for that worker's Done. Then it is handed out once more, however
//     often it was added.
//   - Done says that the worker is finished with a key. Done for a key that no worker has does nothing.
//   - ShutDown ends the intake: later Adds do nothing. The keys that are left are still handed out, also those that
//     were added again while a worker had them. When nothing waits, Get returns false at once.
//
// Any number of goroutines call these methods at once, so a mutex guards the fields. A sync.Cond lets Get wait: Wait
// unlocks the mutex, sleeps until Signal or Broadcast, and locks the mutex again.
//
// Begin with the first test: give Queue its fields, let New make them, and write Add and Get for one worker.
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

// Get takes the next key, and waits for one. It returns false when the queue is shut down and nothing waits.
func (q *Queue[K]) Get() (key K, ok bool) {
	panic("not written yet: Get")
}

// Done says that the worker is finished with the key.
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
