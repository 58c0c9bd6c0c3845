package handler

import (
	"errors"
	"fmt"
	"time"
)

// Registration is a handler that was added to an informer. To remove it, pass it to RemoveHandler.
type Registration interface {
	// Name returns the handler's name in logs and metrics.
	Name() string
	// HasSynced reports whether the handler has returned from its calls for all objects that were there when it began.
	HasSynced() bool
	// Synced returns a channel that is closed when HasSynced becomes true.
	Synced() <-chan struct{}
	// Done returns a channel that is closed when the handler was removed, or its informer stopped, and its last call
	// has returned.
	Done() <-chan struct{}
	// Stats returns the handler's counters.
	Stats() Stats
}

// Stats counts the calls of one handler.
type Stats struct {
	Name string
	// Delivered counts calls that returned or panicked.
	Delivered int64
	// Pending is the number of changes not yet delivered.
	Pending int64
	// Merged counts changes that were never delivered because a later change of the same object replaced them.
	Merged int64
	// Panics counts calls that panicked.
	Panics int64
	// Busy is the time spent in calls. Running is how long the current run of calls has lasted; it is 0 exactly when
	// the handler is idle.
	Busy, Running time.Duration
}

// ErrStopped reports that the informer has ended and calls no handler any more.
var ErrStopped = errors.New("informer has stopped")

// UndeliveredError reports that a handler was removed before all its changes were delivered.
type UndeliveredError struct {
	Handler string
	// Count is the number of changes that were dropped.
	Count int64
	// Running is true if a call had not returned.
	Running bool
	// Err is why the removal stopped waiting: the context's error, or [ErrStopped].
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
