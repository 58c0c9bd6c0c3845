// Package log is task 04a: a bounded, ordered log between a goroutine that receives changes and one that applies them.
//
// Build the log of chapter 4. About 60 lines are enough.
//
// The contract:
//
//   - Push appends an entry. While the log is full, Push waits for a Take.
//   - Take returns all entries, in the order of the Pushes, and leaves the log empty. While the log is empty, Take
//     waits. The slice that it returns belongs to the caller: a later Push does not change it.
//   - If the context ends while they wait, both return its error. Push has then appended nothing.
//
// Any number of goroutines call Push at the same time, and one calls Take. A mutex guards the slice. A sync.Cond cannot
// wait for a context, so wait for channels: a select can wait for a channel and for ctx.Done() at the same time. To
// wake Take, send a token into a channel of capacity 1. To wake every Push that waits for room, let Take close a
// channel.
//
// Begin with the first test. It needs a mutex and a slice, and a Push and a Take that do not wait.
package log

import "context"

// Log holds entries in order.
type Log[T any] struct{}

// New returns an empty log that holds up to limit entries.
func New[T any](limit int) *Log[T] {
	panic("not written yet: New")
}

// Push appends an entry, and waits while the log is full.
func (l *Log[T]) Push(ctx context.Context, entry T) error {
	panic("not written yet: Push")
}

// Take returns all entries and empties the log. It waits while the log is empty.
func (l *Log[T]) Take(ctx context.Context) ([]T, error) {
	panic("not written yet: Take")
}

// Len returns the number of entries in the log.
func (l *Log[T]) Len() int {
	panic("not written yet: Len")
}
