package handler

import "time"

// Handler is called for every change of an informer's cache. Functions that are nil are not called.
//
// Concurrency: one goroutine at a time calls the functions of a handler, and holds no lock meanwhile. They may call any
// method of the informer. They may also block: only this handler waits. Objects are shared, so copy before you change
// one.
type Handler[T any] struct {
	// OnAdd is called for an object that is new to the cache. initial is true for the objects that were there when the
	// informer, or this handler, began.
	OnAdd func(obj T, initial bool)
	// OnUpdate is called for a new state of an object. old is the state that this handler was last called with. A
	// resync calls OnUpdate with the same pointer twice.
	OnUpdate func(old, obj T)
	// OnDelete is called when an object is gone.
	OnDelete func(d Deleted[T])
}

// Deleted is an object that is gone.
type Deleted[T any] struct {
	// Key is "namespace/name", or "name" for a cluster-scoped object.
	Key string
	// Object is its last known state.
	Object T
	// Stale is true if the deletion itself was not observed: the object was missing from a later list. Object is then
	// the last state that the cache held; there may have been later ones.
	Stale bool
}

// Options configure the delivery to one handler. The zero value works.
type Options struct {
	// Name identifies the handler in logs, metrics and reports. An empty name is replaced by a numbered one, and a
	// number is appended to a name that another handler of the informer already has.
	Name string
	// Resync, when positive, repeats every object of the cache as an update at that interval, without a request to the
	// server. It is for handlers that also depend on something outside the cache. The minimum is one second. A negative
	// value turns resyncs off, even if the factory has a default.
	Resync time.Duration
	// MaxLag is how many batches the handler may lag behind before its pending changes are merged into one per object.
	// Several thousand changes in fewer batches have the same effect. 0 means 64. A negative value turns merging off:
	// the handler gets every state, and a slow one holds memory without bound.
	MaxLag int
}

// PanicPolicy decides what happens when a handler panics.
type PanicPolicy int

const (
	// ContainPanics logs the panic with its stack, counts it, and goes on with the next change.
	ContainPanics PanicPolicy = iota
	// CrashOnPanic lets the panic end the process.
	CrashOnPanic
)
