// Package contradiction holds back keys whose writes are contradicted by the server again and again: the server refuses
// them because the object does not exist, although a cache holds the object. It is one of the checks beside the loop of
// package reconcile.
//
// Then the cache is wrong. A reconcile that trusts it may create objects that other controllers delete at once. The
// events of these deletions would run the key again immediately, whatever its backoff.
package contradiction

import (
	"fmt"
	"time"

	"github.com/flyball-dev/flyball/reconcile/internal/overdue"
	"github.com/flyball-dev/flyball/writes"
)

const (
	// heldAfter is the number of contradicted reconciles after which a key is held back.
	heldAfter = 2
	// Min is how long a key is held back at first. Each later wait is twice as long, up to Max.
	Min = time.Second
	// Max is the longest time for which a key is held back.
	Max = time.Minute
)

// State describes the contradictions of one key. It is immutable: Next returns a new State. So its methods need no
// lock, and they must not be called under one, because they read a cache. Nil is the state of a key that was not
// contradicted.
type State struct {
	why *writes.ContradictionError
	// runs is the number of contradicted reconciles. since is when the first of them ended, and last when the latest
	// ended.
	runs        int
	since, last time.Time
	// until is when the next reconcile may begin.
	until time.Time
}

// Stands reports whether the next reconcile is likely to be contradicted as well: the cache still holds the object, and
// the last contradiction is recent.
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

// Next returns the state after a further reconcile. why is the contradiction of that reconcile, or nil if it had none.
// A reconcile without a contradiction may have written nothing, so it does not end a state that stands.
func (s *State) Next(why *writes.ContradictionError) *State {
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

// Health returns an error that names the keys that are held back, or nil if there are none.
func Health[K comparable](name string, states map[K]*State) error {
	since := map[K]time.Time{}
	for key, state := range states {
		if state.held() {
			since[key] = state.since
		}
	}
	longest, keys := overdue.Longest(since, 0)
	if keys == 0 {
		return nil
	}
	return fmt.Errorf("%w: %w", overdue.Report(name, "contradicted by the server", since, 0), states[longest].why)
}
