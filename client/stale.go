package client

import (
	"errors"
	"fmt"
	"time"
)

// ErrStale says that the cache cannot tell yet what this process wrote. Nothing is wrong: try again a little later.
// Package reconcile does, without counting it as a failure. Only reads with the context of a reconcile return it, or
// with one of [WithOwner]. Map functions, validators, runnables and programs that run once get an answer instead: see
// the package comment.
var ErrStale = errors.New("the cache is behind a write of this process")

// StaleError is the [ErrStale] of one read.
type StaleError struct {
	// Resource and Key are what was to be read; of a list the name is empty.
	Resource string
	Key      ObjectKey
	// Wanted is the resource version to wait for, and Seen the cache's. Wanted is empty while nobody knows it.
	Wanted, Seen string
	// RetryAfter is how long it takes at least; zero when that is not known.
	RetryAfter time.Duration
	// Cause is the error of the write whose effect is not known; nil if there is none.
	Cause error
}

func (e *StaleError) Error() string {
	what := e.Resource
	if e.Key.Name != "" || e.Key.Namespace != "" {
		what += " " + e.Key.String()
	}
	switch {
	case e.Cause != nil:
		return fmt.Sprintf("read %s: %v: the outcome of a write is unknown: %v", what,
			ErrStale, e.Cause)
	case e.Wanted != "":
		return fmt.Sprintf("read %s: %v: it is at resource version %q, not at %q", what, ErrStale, e.Seen, e.Wanted)
	}
	return fmt.Sprintf("read %s: %v", what, ErrStale)
}

// Is makes it an [ErrStale]. The cause is not unwrapped: it belongs to another operation.
func (e *StaleError) Is(target error) bool { return target == ErrStale }
