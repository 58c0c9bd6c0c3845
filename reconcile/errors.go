package reconcile

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/flyball-dev/flyball/reconcile/internal/hotloop"
)

// ErrStopped is returned when something is asked of a controller that has been run already.
var ErrStopped = errors.New("the controller was already run, and can run only once")

// errTimeout is the cause of a reconcile's context that ended by Options.Timeout. It is a deadline like any other.
var errTimeout = fmt.Errorf("the reconcile timed out: %w", context.DeadlineExceeded)

// StuckError names the reconciles that did not return although their context was cancelled. Their
// goroutines still run: the process should end.
type StuckError struct {
	Controller string
	Keys       []string // with the time each has been running, sorted
}

func (e *StuckError) Error() string {
	return fmt.Sprintf("controller %s: %d of its reconciles did not end in time: %s", e.Controller, len(e.Keys),
		strings.Join(e.Keys, ", "))
}

// PanicError is what a panic in a reconciler becomes.
type PanicError struct {
	Value any
	Stack []byte
}

func (e *PanicError) Error() string { return fmt.Sprintf("panic: %v", e.Value) }

// Unwrap is the panic's value, if that is an error.
func (e *PanicError) Unwrap() error {
	err, _ := e.Value.(error)
	return err
}

// SelfTriggeredError reports that the reconciles of a key cause each other.
type SelfTriggeredError struct {
	Controller, Key string
	// Runs is how many there were in a row, and Duration how long they took. It is 0 where the clock is virtual and
	// did not move.
	Runs     int
	Duration time.Duration
	// Trigger is what the last run was caused by, in words for people:
	// "its own update of configmaps default/x (field manager greeter)".
	Trigger string
}

// Error says what happened, and what to do.
func (e *SelfTriggeredError) Error() string {
	took := "within " + e.Duration.Round(time.Millisecond).String()
	if e.Duration == 0 {
		took = "while no time passed"
	}
	return fmt.Sprintf("controller %s: key %s was reconciled %d times in a row, %s, and was triggered again each time "+
		"by %s: "+
		"write only what differs, or leave the event out with a predicate", e.Controller, e.Key, e.Runs, took,
		e.Trigger)
}

func (c *engine[K]) SelfTriggered() error {
	if found := c.rooms.hotloop.First(); found != nil {
		return c.loopError(found)
	}
	return nil
}

func (c *engine[K]) loopError(l *hotloop.Loop) error {
	return &SelfTriggeredError{Controller: c.name, Key: l.Key, Runs: l.Runs, Duration: l.Duration, Trigger: l.Trigger}
}
