package reconcile

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// ErrStopped is returned when something is asked of a controller that has been run already.
var ErrStopped = errors.New("the controller has been run already, and runs only once")

// errTimeout is the cause of a reconcile's context that ended by Options.Timeout. It is a deadline like any other.
var errTimeout = fmt.Errorf("the reconcile takes longer than it may: %w", context.DeadlineExceeded)

// StuckError names the reconciles that did not return although their context was cancelled. Their
// goroutines still run: the process should end.
type StuckError struct {
	Controller string
	Keys       []string // with the time each has been running, sorted
}

func (e *StuckError) Error() string {
	return fmt.Sprintf("controller %s: %d of its reconciles did not end in time: %s", e.Controller, len(e.Keys), strings.Join(e.Keys, ", "))
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

// stuck names what is in flight.
func (c *Controller[K]) stuck() error {
	return &StuckError{Controller: c.name, Keys: c.InFlight()}
}

// InFlight names the keys that are being reconciled at this moment, with the time each has been running, sorted. How many
// there are is in [Stats], too.
func (c *Controller[K]) InFlight() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	keys := make([]string, 0, len(c.inFlight))
	for key, since := range c.inFlight {
		keys = append(keys, fmt.Sprintf("%v (running for %s)", key, time.Since(since).Round(time.Millisecond)))
	}
	slices.Sort(keys)
	return keys
}
