// Package fanout is task 06a: one stream of changes for many handlers, some of them slow.
//
// A cache publishes what changed in it. Each handler hears of it, at its own pace. Build it in two parts: Merge, a
// function without any goroutine, and then Fanout. About 100 lines are enough.
//
// The contract:
//
//   - Publish never waits for a handler, and handlers never wait for each other.
//   - A handler is called by one goroutine at a time, in the order of the changes. It hears of what is published after
//     it was added.
//   - If more than limit changes wait for a handler, they are merged: for each key the state that it was told last, and
//     the newest. So what waits is bounded by the limit or by the number of objects, whichever is larger.
//   - Merge drops an object that came and went. An object that was deleted and created again, with another UID, stays a
//     deletion and an addition. The order is that of the first change of each key.
//   - Stop waits for the calls that are running. After it, no call begins, and no goroutine is left. What waits is
//     dropped.
//
// Begin with Merge, which is all that the first four tests need. In the changes of one key, each Old is the New of the
// change before.
package fanout

// Object is a state of an object.
type Object struct {
	Key, UID string
	Version  int
}

// Change is what happened to one object. Old is nil if it was added, New if it was deleted.
type Change struct{ Old, New *Object }

// Merge returns a shorter list of changes with the same outcome.
func Merge(changes []Change) []Change {
	panic("not written yet: Merge")
}

// Fanout gives every change to every handler.
type Fanout struct{}

// Handler is a function that is called for each change.
type Handler struct{}

// New returns a Fanout without handlers. More than limit changes that wait for a handler are merged.
func New(limit int) *Fanout {
	panic("not written yet: New")
}

// Add adds a handler.
func (f *Fanout) Add(handle func(Change)) *Handler {
	panic("not written yet: Add")
}

// Publish tells all handlers of changes.
func (f *Fanout) Publish(changes ...Change) {
	panic("not written yet: Publish")
}

// Stop ends all calls.
func (f *Fanout) Stop() {
	panic("not written yet: Stop")
}

// Waiting returns how many changes wait for the handler. The one that it is being told does not count.
func (h *Handler) Waiting() int {
	panic("not written yet: Waiting")
}
