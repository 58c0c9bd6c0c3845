// Package delay is task 07b: keys that are added later, with a heap and one timer.
//
// Build the AddAfter of a work queue. Delays holds keys, each until its deadline. It then passes the key to the
// function that New was given, which is the Add of a queue.
//
// The contract:
//
//   - AddAfter(key, wait) adds the key when wait has passed. If wait is zero or less, it does so before it returns, and
//     leaves a delay that the key has as it is.
//   - Keys are added in the order of their deadlines. Keys of the same deadline are added in the order of the calls of
//     AddAfter.
//   - If a key has several delays, only the earliest counts, and the key is added once.
//   - There is one timer, for the earliest deadline, however many keys wait.
//   - add is called while the mutex is not locked, because it may call AddAfter.
//   - Stop drops the waiting keys, and returns when no call of add is running. After that no key is added.
//
// Package container/heap makes a heap of a slice with five methods. time.AfterFunc makes a timer that calls a function
// in a goroutine of its own; Reset sets it to another time. Tests run in virtual time, so an hour takes no time.
//
// Begin with the first test. A slice of keys with their deadlines, and time.AfterFunc, are enough for it.
package delay

import "time"

// Delays holds keys that are added later.
type Delays[K comparable] struct{}

// New returns Delays that pass keys to add.
func New[K comparable](add func(key K)) *Delays[K] {
	return &Delays[K]{}
}

// AddAfter adds the key when wait has passed.
func (d *Delays[K]) AddAfter(key K, wait time.Duration) {
	panic("not written yet: AddAfter")
}

// Len returns how many keys wait.
func (d *Delays[K]) Len() int {
	panic("not written yet: Len")
}

// Stop drops the waiting keys, and returns when no call of add is running.
func (d *Delays[K]) Stop() {
	panic("not written yet: Stop")
}
