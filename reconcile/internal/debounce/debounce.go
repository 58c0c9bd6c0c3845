// Package debounce keeps keys from running too often. It implements Options.MinInterval, Debounce and MaxDebounce of
// package reconcile, as one of the checks beside the loop.
//
// A key is checked when a worker has taken it. If it is too early, the key goes back into the queue with a delay, and
// State keeps its causes until it runs.
package debounce

import (
	"slices"
	"time"

	"github.com/flyball-dev/flyball/workqueue"
)

// Limits bound how often a key may run. The zero value has no bounds.
type Limits struct {
	// Interval is the shortest time between the starts of two runs.
	Interval time.Duration
	// Quiet is how long a key waits after the last event that added it. It runs no later than Longest after the first
	// of these events. WithDefaults replaces a Longest of zero by ten times Quiet.
	Quiet, Longest time.Duration
}

// WithDefaults fills in Longest.
func (l Limits) WithDefaults() Limits {
	if l.Longest <= 0 {
		l.Longest = 10 * l.Quiet
	}
	return l
}

// Any reports whether there is a limit.
func (l *Limits) Any() bool { return l.Interval > 0 || l.Quiet > 0 }

// State describes one key. The zero value is a key that has never run.
type State struct {
	// started is when the last run of the key began.
	started time.Time
	// first and last are the times of the first and the last event that added the key since started. They are zero if
	// there was no such event, or if Limits.Quiet is zero.
	first, last time.Time
	// waiting reports whether the key was put off and has not run since. causes are the causes that were collected
	// meanwhile.
	waiting bool
	causes  []workqueue.Cause
}

// maxCauses bounds State.causes. The queue has the same bound for the causes of a key.
const maxCauses = 8

// Added records that an event added the key.
func (s *State) Added(now time.Time) {
	s.last = now
	if s.first.IsZero() {
		s.first = now
	}
}

// Waiting reports whether the key was put off and has not run since. It may be called on nil.
func (s *State) Waiting() bool { return s != nil && s.waiting }

// Idle reports whether s may be replaced by the zero value without effect.
func (s *State) Idle(l *Limits, now time.Time) bool {
	return s.last.IsZero() && !s.waiting && now.Sub(s.started) >= l.Interval
}

// Admit returns how long a key that a worker has taken still has to wait. If it returns zero, the key runs now, and
// Admit has added the causes collected while the key waited to item.
func Admit[K comparable](s *State, l *Limits, item *workqueue.Item[K], now time.Time) (wait time.Duration) {
	if !s.started.IsZero() {
		wait = s.started.Add(l.Interval).Sub(now)
	}
	if !s.last.IsZero() {
		wait = max(wait, min(s.last.Add(l.Quiet).Sub(now), s.first.Add(l.Longest).Sub(now)))
	}
	// The queue owns item.Causes, so they are copied.
	s.causes = append(s.causes, item.Causes...)
	if over := len(s.causes) - maxCauses; over > 0 {
		s.causes = s.causes[:maxCauses]
		item.DroppedCauses += over
	}
	if wait > 0 {
		s.waiting = true
		return wait
	}
	item.Causes = slices.Clip(s.causes)
	*s = State{started: now}
	return 0
}
