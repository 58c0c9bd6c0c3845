// Package debounce keeps keys from running too often: it is the room beside the loop for Options.MinInterval,
// Debounce and MaxDebounce of package reconcile.
//
// A key is looked at when a worker has taken it. One that comes too early goes back into the queue with a delay, and
// its causes wait in its record.
package debounce

import (
	"slices"
	"time"

	"github.com/flyball-dev/flyball/workqueue"
)

// Limits are how often a key may run. The zero value has none.
type Limits struct {
	// Interval is the least time between the starts of two runs.
	Interval time.Duration
	// Quiet is how long no event must have added the key, and Longest how long it waits for that at most. A Longest
	// of 0 is ten times Quiet.
	Quiet, Longest time.Duration
}

// WithDefaults fills in what the zero values of options mean.
func (l Limits) WithDefaults() Limits {
	if l.Longest <= 0 {
		l.Longest = 10 * l.Quiet
	}
	return l
}

// Any reports whether there is a limit.
func (l *Limits) Any() bool { return l.Interval > 0 || l.Quiet > 0 }

// State is what is known about one key. The zero value is a key that never ran.
type State struct {
	// started is when its last run began.
	started time.Time
	// first and last are when events added it since then; zero if none did, or if Quiet is zero.
	first, last time.Time
	// waiting: it was put off and has not run since. causes are those of the runs that were put off.
	waiting bool
	causes  []workqueue.Cause
}

// maxCauses bounds State.causes, as the queue bounds those of a key.
const maxCauses = 8

// Heard notes that an event added the key.
func (s *State) Heard(now time.Time) {
	s.last = now
	if s.first.IsZero() {
		s.first = now
	}
}

// Waiting reports whether the key was put off and has not run since.
func (s *State) Waiting() bool { return s != nil && s.waiting }

// Idle reports whether nothing would change if s were forgotten.
func (s *State) Idle(l *Limits, now time.Time) bool {
	return s.last.IsZero() && !s.waiting && now.Sub(s.started) >= l.Interval
}

// Admit returns how long a key that a worker has taken still has to wait. Zero lets it run now, and gives the run the
// causes of all the runs that were put off.
func Admit[K comparable](s *State, l *Limits, item *workqueue.Item[K], now time.Time) (wait time.Duration) {
	if !s.started.IsZero() {
		wait = s.started.Add(l.Interval).Sub(now)
	}
	if !s.last.IsZero() {
		wait = max(wait, min(s.last.Add(l.Quiet).Sub(now), s.first.Add(l.Longest).Sub(now)))
	}
	// The item's slice belongs to the queue and must not grow into the queue's memory.
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
