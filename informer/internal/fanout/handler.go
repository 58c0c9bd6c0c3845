package fanout

import (
	"context"
	"fmt"
	"time"
)

// Handler is told what changes. A nil function is not called; the zero Handler is valid and useless.
//
// Concurrency: the functions of one handler are called by one goroutine at a time, with no lock held: they may call
// any method of the informer, and block (only this handler waits). The objects are shared: copy before changing.
type Handler[T any] struct {
	// OnAdd tells of an object new to the cache. initial says that it was there when the informer, or this handler,
	// began.
	OnAdd func(obj T, initial bool)
	// OnUpdate tells of a new state. old is the state this handler was told last. Both are the same pointer when a
	// resync, not a change, is the reason.
	OnUpdate func(old, obj T)
	// OnDelete tells that an object is gone.
	OnDelete func(d Deleted[T])
}

// Deleted is an object that is gone.
type Deleted[T any] struct {
	// Key is "namespace/name", or "name" for a cluster-scoped object.
	Key string
	// Object is its last known state.
	Object T
	// Stale says that the deletion itself was not seen: the object was missing from a later list, and Object is
	// what the cache last held. There may have been later states.
	Stale bool
}

// HandlerOptions say how a handler is served. The zero value works.
type HandlerOptions struct {
	// Name stands in logs, metrics and reports; "" is numbered, and so is a name that another handler of the
	// informer has.
	Name string
	// Resync, when positive, repeats every object of the cache as an update at that interval. It makes no request
	// to the server: it is for handlers that look at something beside the cache. Minimum: one second. Negative:
	// none, also where a factory has a default.
	Resync time.Duration
	// MaxLag is how many batches the handler may be behind before what it has not seen is merged into one state per
	// object; several thousand changes in fewer batches have the same effect. 0 means 64. Negative: never merge; the
	// handler gets every state, and a slow one holds memory without bound.
	MaxLag int
}

// Registration is a handler in an informer.
type Registration struct {
	name string
	// synced is closed by the handler's own goroutine, after the last add of the initial list returned. Nothing is
	// sent.
	synced chan struct{}
	gone   chan struct{} // See Done.
	// remove is the fan-out's; see Remove.
	remove func(ctx context.Context) error
	stats  func() HandlerStats
}

// Remove is described at informer.Informer.RemoveHandler.
func Remove(ctx context.Context, r *Registration) error { return r.remove(ctx) }

// Name is the handler's name in logs and metrics.
func (r *Registration) Name() string { return r.name }

// HasSynced reports whether the handler was told of all objects that were there when it began, and returned.
func (r *Registration) HasSynced() bool {
	select {
	case <-r.synced:
		return true
	default:
		return false
	}
}

// Synced is closed when HasSynced becomes true.
func (r *Registration) Synced() <-chan struct{} { return r.synced }

// Done is closed when the handler was removed, or its informer stopped, and its last call has returned.
func (r *Registration) Done() <-chan struct{} { return r.gone }

// Stats counts what the handler was given.
func (r *Registration) Stats() HandlerStats { return r.stats() }

// HandlerStats counts what a handler was given.
type HandlerStats struct {
	Name string
	// Delivered counts calls that returned or panicked.
	Delivered int64
	// Pending is the number of notifications not yet delivered.
	Pending int64
	// Merged counts notifications that never were delivered because a later one took their place.
	Merged int64
	// Panics counts calls that panicked.
	Panics int64
	// Busy is the time spent in calls. Running is for how long the present run of calls has lasted; 0 exactly when
	// idle.
	Busy, Running time.Duration
}

// PanicPolicy says what becomes of a panic in a handler.
type PanicPolicy int

const (
	// ContainPanics logs the panic with its stack, counts it, and goes on with the next notification.
	ContainPanics PanicPolicy = iota
	// CrashOnPanic lets it end the process.
	CrashOnPanic
)

// UndeliveredError says that a handler was removed before it was told everything.
type UndeliveredError struct {
	Handler string
	// Count is the number of notifications it will not get.
	Count int64
	// Running says that a call had not returned.
	Running bool
	// Err is the reason to stop waiting: the context's error.
	Err error
}

func (e *UndeliveredError) Error() string {
	running := ""
	if e.Running {
		running = ", one call still running"
	}
	return fmt.Sprintf("handler %s removed with %d notifications undelivered%s: %v", e.Handler, e.Count, running, e.Err)
}

func (e *UndeliveredError) Unwrap() error { return e.Err }
