package idle

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/writes"
)

const (
	// minInterval is the interval at which a working manager is polled, maxInterval that for one that waits only for
	// delayed keys.
	minInterval = time.Millisecond
	maxInterval = 100 * time.Millisecond
	// unseenPolls is the number of polls without any activity after which Wait stops waiting for a write to show. It
	// may never show, because perhaps no cache selects the object. Wait counts polls, not time, so that a process that
	// was suspended does not give up early. The polls take at least a second.
	unseenPolls = int(time.Second / minInterval)
)

// Watcher finds out when a manager is idle.
type Watcher struct {
	// Running reports whether the manager runs.
	Running func() bool
	// Loops returns the manager's controllers.
	Loops func() []reconcile.Loop
	// Informers are the manager's caches.
	Informers *informer.Factory
	// Writes are all its writes.
	Writes *writes.Awaited
	// Retries, DueLater and Enough are Retries, Wait and Enough of manager.IdleOptions.
	Retries  int
	DueLater bool
	Enough   func(context.Context) bool
	// BeforePoll is called before each poll.
	BeforePoll func()
}

// errEnded is returned when the manager stopped before it was idle.
var errEnded = errors.New("the manager stopped before it was idle")

// SelfTriggered returns the error of a controller that will never be idle, or nil if there is none.
func (w *Watcher) SelfTriggered() error {
	for _, loop := range w.Loops() {
		if l, ok := loop.(interface{ SelfTriggered() error }); ok {
			if err := l.SelfTriggered(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Wait returns nil when there is nothing more to do, when a controller will never be idle, or when ctx is done. If the
// manager's Run has returned, Wait receives its error from ended and returns it, or errEnded if that is nil.
func (w *Watcher) Wait(ctx context.Context, ended <-chan error) error {
	timer := time.NewTimer(0)
	defer timer.Stop()
	var last activity
	unseen := 0 // the number of polls that found only the same writes missing
	for {
		select {
		case <-ctx.Done():
			return nil
		case err := <-ended:
			if err == nil && ctx.Err() == nil {
				err = errEnded
			}
			return err
		case <-timer.C:
		}
		if w.SelfTriggered() != nil {
			return nil
		}
		w.BeforePoll()
		found, next := w.poll(ctx)
		timer.Reset(min(max(next, minInterval), maxInterval))
		switch found {
		case atRest:
			return nil
		case busy:
			unseen = 0
		case unseenWrites:
			if a := w.activity(); a != last {
				last, unseen = a, 0
			}
			if unseen++; unseen > unseenPolls {
				w.Writes.GiveUp(ctx)
				unseen = 0
			}
		}
	}
}

// result is the result of a poll.
type result int

const (
	busy         result = iota
	unseenWrites        // nothing else is left, but the caches do not show some writes
	atRest
)

// poll finds out whether anything is left to do, and when to poll again. Work moves from a write to the cache, the
// handlers, the queue, the reconcile and the next write, and each of these steps increments a counter. So if two checks
// find nothing, and no counter has changed between them, no work has moved past the checks.
func (w *Watcher) poll(ctx context.Context) (found result, next time.Duration) {
	if !w.isQuiet() {
		return busy, minInterval
	}
	before := w.activity()
	behind := w.Writes.Behind(ctx)
	settled, next := w.settled(ctx)
	switch {
	case !settled:
		return busy, next
	case !w.isQuiet() || w.activity() != before:
		return busy, minInterval
	case behind:
		return unseenWrites, minInterval
	}
	return atRest, 0
}

// activity has the sums of all counters. It changes whenever work moves.
type activity struct {
	writes, events, delivered, adds, syncs uint64
}

func (w *Watcher) activity() activity {
	a := activity{writes: w.Writes.Count()}
	for _, s := range w.Informers.Stats() {
		a.events += uint64(s.Events + s.Batches + s.Lists)
		for _, h := range s.Handlers {
			a.delivered += uint64(h.Delivered + h.Merged)
		}
	}
	for _, loop := range w.Loops() {
		s := loop.Stats()
		a.adds += s.Adds + s.Events + s.Deferred
		a.syncs += s.Syncs
	}
	return a
}

// isQuiet is the cheap part of the check. It returns false while any work is in flight, queued or being written.
func (w *Watcher) isQuiet() bool {
	if !w.Running() || w.Writes.Moving() {
		return false
	}
	for _, loop := range w.Loops() {
		if s := loop.Stats(); s.InFlight > 0 || s.Queued > 0 {
			return false
		}
	}
	return true
}

// settled reports whether the caches are synced, the handlers are done, the controllers have started, and no delayed
// key is left to wait for. If only delayed keys are left, next is the time until the first of them is due.
func (w *Watcher) settled(ctx context.Context) (settled bool, next time.Duration) {
	if slices.ContainsFunc(w.Informers.Health(), func(h informer.Health) bool { return !h.Synced }) {
		return false, 0
	}
	for _, s := range w.Informers.Stats() {
		if s.Queued > 0 ||
			slices.ContainsFunc(s.Handlers,
				func(h informer.HandlerStats) bool { return h.Pending > 0 || h.Running > 0 }) {
			return false, 0
		}
	}
	const forever = time.Duration(math.MaxInt64)
	settled, next = true, maxInterval
	later := forever // the time until the first key for which Enough decides
	for _, loop := range w.Loops() {
		work := loop.Work()
		if !work.Started || work.Ready > 0 || work.InFlight > 0 {
			return false, 0
		}
		failing := failingOf(work)
		for _, d := range work.Delayed {
			switch {
			case !w.waitsFor(d, failing[d.Key]):
			case w.enoughDecides(d):
				later = min(later, d.In)
			default:
				settled, next = false, min(next, d.In)
			}
		}
	}
	if settled && later < forever && !w.Enough(ctx) {
		return false, min(next, later)
	}
	return settled, next
}

// enoughDecides reports whether Enough may end the wait for a delayed key. It may not if the key failed, if the cache
// was behind a write, or if the key's controller limits how often it runs.
func (w *Watcher) enoughDecides(d reconcile.Delayed) bool {
	return w.Enough != nil && d.Why != reconcile.WhyStale && d.Why != reconcile.WhyDeferred &&
		d.Why != reconcile.WhyRetry
}

// waitsFor reports whether Wait waits for a delayed key.
func (w *Watcher) waitsFor(d reconcile.Delayed, failing reconcile.Failing) bool {
	switch d.Why {
	case reconcile.WhyStale, reconcile.WhyDeferred:
		return true
	case reconcile.WhyRetry:
		// Work does not list all failing keys if there are very many; d.Attempt is known for each.
		return max(failing.Attempts, d.Attempt) <= w.Retries
	}
	return w.DueLater
}

func failingOf(work reconcile.Work) map[string]reconcile.Failing {
	failing := make(map[string]reconcile.Failing, len(work.Failing))
	for _, f := range work.Failing {
		failing[f.Key] = f
	}
	return failing
}
