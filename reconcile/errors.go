package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/flyball-dev/flyball/reconcile/internal/hotloop"
)

// ErrStopped is returned by methods of a controller that has been run already.
var ErrStopped = errors.New("the controller was already run, and can run only once")

// errTimeout is the cause with which Options.Timeout ends the context of a reconcile.
var errTimeout = fmt.Errorf("the reconcile timed out: %w", context.DeadlineExceeded)

// StuckError reports reconciles that did not return although their context was cancelled. Their goroutines are still
// running, so the process should end.
type StuckError struct {
	Controller string
	Keys       []string // with how long each has been running, sorted
}

func (e *StuckError) Error() string {
	return fmt.Sprintf("controller %s: %d of its reconciles did not end in time: %s", e.Controller, len(e.Keys),
		strings.Join(e.Keys, ", "))
}

// PanicError is the error of a reconcile that panicked.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap returns the panic's value if that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// SelfTriggeredError reports a key that triggers itself: each of its reconciles causes the next one.
type SelfTriggeredError struct {
	Controller, Key string
	// Runs is the number of runs in a row, and Duration the time from the first to the last. Duration is 0 if a virtual
	// clock did not move.
	Runs     int
	Duration time.Duration
	// Trigger is the cause of the last run, in words for people:
	// "its own update of configmaps default/x (field manager greeter)".
	Trigger string
}

// Error describes the loop and how to end it.
func (e *SelfTriggeredError) Error() string {
	when := "within " + e.Duration.Round(time.Millisecond).String()
	if e.Duration == 0 {
		when = "while no time passed"
	}
	return fmt.Sprintf("controller %s: key %s was reconciled %d times in a row, %s, and was triggered again each time "+
		"by %s: "+
		"write only what differs, or leave the event out with a predicate", e.Controller, e.Key, e.Runs, when,
		e.Trigger)
}

func (c *engine[K]) SelfTriggered() error {
	if found := c.checks.hotloop.First(); found != nil {
		return c.loopError(found)
	}
	return nil
}

func (c *engine[K]) loopError(l *hotloop.Loop) error {
	return &SelfTriggeredError{Controller: c.name, Key: l.Key, Runs: l.Runs, Duration: l.Duration, Trigger: l.Trigger}
}
