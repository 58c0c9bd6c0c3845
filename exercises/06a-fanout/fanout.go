// Package fanout is task 06a: one stream of changes for many handlers, some of them slow.
//
// A cache publishes its changes, and each handler receives them at its own pace. Build it in two parts: first Merge, a
// function without goroutines, and then Fanout. About 100 lines are enough.
//
// The contract:
//
//   - Publish never waits for a handler, and handlers never wait for each other.
//   - Each handler is called by one goroutine at a time, with the changes in order. It receives the changes that are
//     published after it was added.
//   - If more than limit changes wait for a handler, they are merged into one change for each key: from the state that
//     the handler received last to the newest state. So the number of waiting changes never exceeds the limit or the
//     number of objects, whichever is larger.
//   - Merge drops an object that was added and deleted again. An object that was deleted and created again, with
//     another UID, remains a deletion and an addition. The result is in the order of the first change of each key.
//   - Merge does not change the slice that it gets, and Publish does not keep it: the caller may use it again.
//   - Stop drops the waiting changes and waits for the calls that are running. When it returns, no call begins any
//     more, and no goroutine is left.
//
// Begin with Merge, which is all that the first four tests need. In the changes of one key, each Old is the New of the
// change before it.
package fanout

import "github.com/flyball-dev/flyball/exercises/kube"

// Merge returns a shorter list of changes with the same result.
func Merge(changes []kube.Change) []kube.Change {
	panic("not written yet: Merge")
}

// Fanout gives every change to every handler.
type Fanout struct{}

// Handler calls a function for each change.
type Handler struct{}

// New returns a Fanout without handlers. It merges the changes that wait for a handler when there are more than limit.
func New(limit int) *Fanout {
	panic("not written yet: New")
}

// Add adds a handler.
func (f *Fanout) Add(handle func(kube.Change)) *Handler {
	panic("not written yet: Add")
}

// Publish gives changes to all handlers.
func (f *Fanout) Publish(changes ...kube.Change) {
	panic("not written yet: Publish")
}

// Stop ends all handlers.
func (f *Fanout) Stop() {
	panic("not written yet: Stop")
}

// Waiting returns how many changes wait for the handler. A change that it is being called with does not count.
func (h *Handler) Waiting() int {
	panic("not written yet: Waiting")
}
