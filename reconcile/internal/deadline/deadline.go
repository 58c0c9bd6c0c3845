// Package deadline finds reconciles that take long, with one timer for all of them. It is one of the checks beside the
// loop of package reconcile.
//
// The obvious design is a timer for each reconcile. It costs two allocations and two calls into the runtime. But all
// reconciles have the same limit, so the one that began first reaches the limit first, and one timer is enough. A
// reconcile sets the timer only if it is not set. When the timer fires, all running reconciles are checked, which
// happens at most once within the limit.
package deadline

import (
	"context"
	"math"
	"sync"
	"time"
)

// Run is a reconcile that is running.
type Run struct {
	Began time.Time
	// Slow and Hung report whether Pass has found that the run exceeds the limit of that name.
	Slow, Hung bool
}

// Limits are the times after which a reconcile counts as slow or hung.
type Limits struct {
	// After Slow, a reconcile releases its slot of the concurrency limit. After Hung, it is reported. Zero or less
	// means never.
	Slow, Hung time.Duration
}

// Watch holds the limits and the one timer.
//
// Concurrency: the caller locks. Run takes the lock itself.
type Watch struct {
	limits Limits
	// first is the shorter of the limits.
	first time.Duration
	timer *time.Timer
	// at is when the timer fires; zero if it is not set.
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

// Run calls check at once and each time that the timer fires, until ctx is done. check must call Pass for all runs. Run
// calls check without the lock.
func (w *Watch) Run(ctx context.Context, lock sync.Locker, check func(now time.Time)) {
	lock.Lock()
	fired := w.start()
	lock.Unlock()
	check(time.Now()) // Runs that began before start have not set the timer.
	for {
		select {
		case <-fired:
			lock.Lock()
			w.at = time.Time{}
			lock.Unlock()
			check(time.Now())
		case <-ctx.Done():
			lock.Lock()
			defer lock.Unlock()
			w.stop()
			return
		}
	}
}

// start makes the timer and returns its channel; nil if there is no limit.
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

// Begin records that a run begins.
func (w *Watch) Begin(now time.Time) {
	if w.timer != nil {
		w.setBefore(now.Add(w.first), now)
	}
}

// Pass reports which limits the run has exceeded since the last call of Pass. If the run has a limit ahead, the timer
// fires no later than that.
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

// setBefore sets the timer to due, unless it fires earlier.
func (w *Watch) setBefore(due, now time.Time) {
	if w.timer != nil && (w.at.IsZero() || due.Before(w.at)) {
		w.at = due
		w.timer.Reset(due.Sub(now))
	}
}
