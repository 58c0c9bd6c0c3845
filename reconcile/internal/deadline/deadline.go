// Package deadline notices reconciles that take long, with one timer for all of them. It is a room beside the loop of
// package reconcile.
//
// The obvious design is a timer for each reconcile: two more allocations and two calls into the runtime for each. But
// all reconciles are given the same time, so the one that began first is due first. Here the timer is set when it is
// not set already, and looks at all reconciles that run when it fires: at most once in the time that they are given.
package deadline

import (
	"context"
	"math"
	"sync"
	"time"
)

// Run is one reconcile. The zero value is none.
type Run struct {
	Began time.Time
	// Slow and Hung report that the run has been found to take longer than the limit of that name.
	Slow, Hung bool
}

// Limits are how long a reconcile may take.
type Limits struct {
	// Slow is how long it may take until others need not wait for it, Hung until it is reported. Zero or less: for
	// ever.
	Slow, Hung time.Duration
}

// Watch is the timer.
//
// Concurrency: the caller locks. Run takes the lock itself.
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

// Run calls look when the timer has fired, until ctx is done. look has to call Pass for all runs. It is called without
// the lock.
func (w *Watch) Run(ctx context.Context, lock sync.Locker, look func(now time.Time)) {
	lock.Lock()
	fired := w.start()
	lock.Unlock()
	for {
		select {
		case <-fired:
			lock.Lock()
			w.at = time.Time{}
			lock.Unlock()
			look(time.Now())
		case <-ctx.Done():
			lock.Lock()
			defer lock.Unlock()
			w.stop()
			return
		}
	}
}

// start makes the timer, which stop stops. If there is no limit it returns nil, from which nothing is ever received.
func (w *Watch) start() <-chan time.Time {
	if w.first == never {
		return nil
	}
	w.timer = time.NewTimer(never)
	return w.timer.C
}

func (w *Watch) stop() {
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
}

// Begin notes that a run begins.
func (w *Watch) Begin(now time.Time) {
	if w.timer != nil {
		w.setBefore(now.Add(w.first), now)
	}
}

// Pass marks a run that is past a limit for the first time, and reports which that is. It sets the timer to the next
// limit that the run will pass.
func (w *Watch) Pass(r *Run, now time.Time) (slow, hung bool) {
	pass := func(limit time.Duration, passed *bool) bool {
		switch due := r.Began.Add(limit); {
		case limit <= 0 || *passed:
			return false
		case due.After(now):
			w.setBefore(due, now)
			return false
		}
		*passed = true
		return true
	}
	return pass(w.limits.Slow, &r.Slow), pass(w.limits.Hung, &r.Hung)
}

// setBefore sets the timer to due, unless it fires before that.
func (w *Watch) setBefore(due, now time.Time) {
	if w.timer != nil && (w.at.IsZero() || due.Before(w.at)) {
		w.at = due
		w.timer.Reset(due.Sub(now))
	}
}
