// Package delay is task 07b: keys that are added later, with a heap and one timer.
//
// Build what AddAfter of a work queue needs. Delays holds the keys that wait for their time. When the time of a key
// has come, it passes the key to the function that New was given: the Add of a queue.
//
// The contract:
//
//   - AddAfter(key, wait) adds the key when wait has passed. If wait is zero or less, it does so before it returns.
//   - Keys are added in the order of their deadlines, and those of one deadline in the order of their AddAfter calls.
//   - If a key has several delays, the earliest counts and the others do nothing: the key is added once.
//   - There is one timer. It is set to the earliest deadline, however many keys wait.
//   - add is called without the mutex locked: it may call AddAfter.
//   - Stop drops what waits, and returns when no call of add is running. After that nothing is added.
//
// Package container/heap makes a heap of a slice with five methods. time.AfterFunc makes a timer that calls a function
// in a goroutine of its own; Reset sets it to another time. Tests run in virtual time, so an hour takes no time.
//
// Begin with the first test: a slice of keys with their deadlines is enough for it, and time.AfterFunc.
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

// Len returns how many keys wait for their time.
func (d *Delays[K]) Len() int {
	panic("not written yet: Len")
}

// Stop drops what waits, and returns when no call of add is running.
func (d *Delays[K]) Stop() {
	panic("not written yet: Stop")
}
