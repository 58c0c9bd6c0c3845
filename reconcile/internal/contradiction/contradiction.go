// Package contradiction holds keys back whose writes the server contradicts again and again: it refuses them because
// it does not have an object that a cache holds. It is a room beside the loop of package reconcile.
//
// The cache of such a key is wrong, and each of its reconciles may have made something that others undo. The events
// of that would run the key again at once, whatever the backoff of its failures is.
package contradiction

import (
	"fmt"
	"time"

	"github.com/flyball-dev/flyball/internal/cachecheck"
	"github.com/flyball-dev/flyball/reconcile/internal/complaint"
)

const (
	// heldAfter is how many reconciles of a key the server must contradict before the key is held back.
	heldAfter = 2
	// Min is how long a key is held back first. It is twice as long each time, up to Max.
	Min = time.Second
	// Max is how long a key is held back at most.
	Max = time.Minute
)

// State is what is known of one key that was contradicted. It is never changed: Next makes another one. So it can be
// read without the lock of who holds it; its methods ask a cache, and must not be called under a lock.
type State struct {
	why  *cachecheck.ContradictionError
	runs int // that were contradicted
	// since is when the first of them ended, last when the last did, until when the next may begin.
	since, last, until time.Time
}

// Stands reports whether the key may be contradicted again: the cache holds the object, and the last time was not
// long ago. Nil does not stand.
func (s *State) Stands() bool {
	return s != nil && s.why.Stands() && (time.Since(s.last) < Max || time.Until(s.until) > 0)
}

// Wait returns how long the key still has to wait. The wait ends early when the cache no longer holds the object.
func (s *State) Wait() time.Duration {
	if !s.Stands() {
		return 0
	}
	return time.Until(s.until)
}

// Next returns the state after a reconcile that ended with a contradiction or, if why is nil, without one. One that
// wrote nothing says little, so a state that stands stays.
func (s *State) Next(why *cachecheck.ContradictionError) *State {
	if !s.Stands() {
		s = nil
	}
	if why == nil {
		return s
	}
	now := time.Now()
	next := State{since: now}
	if s != nil {
		next = *s
	}
	next.why, next.last = why, now
	if next.runs++; next.runs >= heldAfter {
		next.until = now.Add(min(Min<<min(next.runs-heldAfter, 10), Max))
	}
	return &next
}

// held reports whether the key is held back.
func (s *State) held() bool { return s.Stands() && s.runs >= heldAfter }

// Complaint returns an error about the keys that are held back, or nil if there is none.
func Complaint[K comparable](name string, states map[K]*State) error {
	since := map[K]time.Time{}
	for key, state := range states {
		if state.held() {
			since[key] = state.since
		}
	}
	err := complaint.About(name, "contradicted by the server", since, 0)
	if err == nil {
		return nil
	}
	longest, _ := complaint.Longest(since, 0)
	return fmt.Errorf("%w: %w", err, states[longest].why)
}
