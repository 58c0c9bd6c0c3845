// Package deadline notices reconciles that take long, with one timer for all of them. It is a room beside the loop of
// package reconcile.
//
// The obvious design is a timer for each reconcile: two more allocations and two calls into the runtime for each. But
// all reconciles are given the same time, so the one that began first is due first. Here the timer is set when it is
// not set already, and looks at all reconciles that run when it fires: at most once in the time that they are given.
package deadline

import (
	"iter"
	"math"
	"time"
)

// Run is one reconcile. The zero value is none.
type Run struct {
	Began time.Time
	// Slow and Hung report that the run has been found to take longer than the limit of that name.
	Slow, Hung bool
}

// HungSince is when the run began, if it was found to hang; else zero.
func (r *Run) HungSince() time.Time {
	if !r.Hung {
		return time.Time{}
	}
	return r.Began
}

// Limits are how long a reconcile may take.
type Limits struct {
	// Slow is how long it may take until others need not wait for it, Hung until it is reported. Zero or less: for
	// ever.
	Slow, Hung time.Duration
}

// Watch is the timer.
//
// Concurrency: the caller locks; C may be received from without the lock.
type Watch struct {
	limits Limits
	// first is the shorter of the limits.
	first time.Duration
	timer *time.Timer
	// at is when the timer fires. It is zero if the timer is not set.
	at time.Time
}

// never is longer than any limit.
const never = time.Duration(math.MaxInt64)

// New returns a Watch whose timer is not set.
func New(l Limits) *Watch {
	w := &Watch{limits: l, first: never}
	for _, limit := range []time.Duration{l.Slow, l.Hung} {
		if limit > 0 {
			w.first = min(w.first, limit)
		}
	}
	return w
}

// Start makes the timer, which Stop stops, before the first run begins. Where there is no limit it returns nil, from
// which nothing is ever received.
func (w *Watch) Start() <-chan time.Time {
	if w.first == never {
		return nil
	}
	w.timer = time.NewTimer(never)
	return w.timer.C
}

// Stop stops the timer.
func (w *Watch) Stop() {
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
}

// Begin notes that a run begins.
func (w *Watch) Begin(now time.Time) {
	if w.timer == nil {
		return
	}
	if due := now.Add(w.first); w.at.IsZero() || due.Before(w.at) {
		w.set(due, now)
	}
}

func (w *Watch) set(due, now time.Time) {
	w.at = due
	w.timer.Reset(due.Sub(now))
}

// Pass marks a run that is past a limit for the first time, and reports which that is.
func (w *Watch) Pass(r *Run, now time.Time) (slow, hung bool) {
	took := now.Sub(r.Began)
	slow = w.limits.Slow > 0 && took >= w.limits.Slow && !r.Slow
	hung = w.limits.Hung > 0 && took >= w.limits.Hung && !r.Hung
	r.Slow, r.Hung = r.Slow || slow, r.Hung || hung
	return slow, hung
}

// Fired sets the timer to the next limit that a run will pass. It has to be called when the timer has fired, after
// Pass of all runs.
func (w *Watch) Fired(running iter.Seq[*Run], now time.Time) {
	w.at = time.Time{}
	if w.timer == nil {
		return
	}
	for r := range running {
		for _, next := range []struct {
			limit  time.Duration
			passed bool
		}{{w.limits.Slow, r.Slow}, {w.limits.Hung, r.Hung}} {
			if due := r.Began.Add(next.limit); next.limit > 0 && !next.passed && (w.at.IsZero() || due.Before(w.at)) {
				w.set(due, now)
			}
		}
	}
}
