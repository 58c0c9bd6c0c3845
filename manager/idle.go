package manager

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/ownwrites"
	"github.com/flyball-dev/flyball/reconcile"
)

// IdleOptions configures [Manager.RunUntilIdle]. The zero value works.
type IdleOptions struct {
	// Retries is how often a failing key is retried before RunUntilIdle stops waiting for it. Zero means 5; negative
	// means that it does not wait at all.
	Retries int
	// Wait makes RunUntilIdle wait for keys that are due later, as long as the context allows. Without it, they are
	// only listed.
	Wait bool
	// Enough stops the waiting for keys that are due later once it returns true. It is called now and then while
	// nothing else is left to do. Nil means that it never returns true.
	Enough func(context.Context) bool
	// Progress is called with the progress so far, from one goroutine, at most once every ProgressEvery. Nil means no
	// reports.
	Progress func(Progress)
	// ProgressEvery is the minimum interval between calls of Progress. Zero means 100 ms.
	ProgressEvery time.Duration
}

const (
	defaultRetries       = 5
	defaultProgressEvery = 100 * time.Millisecond
	// idleTick is the interval at which a working manager is polled; delayTick is the interval for one that waits only
	// for delayed keys.
	idleTick  = time.Millisecond
	delayTick = 100 * time.Millisecond
	// unseenPatience is the number of polls for which everything must be at rest before RunUntilIdle stops waiting for
	// a write to show. A cache may never show it, because none may select the object. It counts polls rather than time,
	// so that a process that was suspended for a while is as patient as others. They take at least a second.
	unseenPatience = int(time.Second / idleTick)
)

func (o IdleOptions) withDefaults() IdleOptions {
	if o.Retries == 0 {
		o.Retries = defaultRetries
	}
	if o.ProgressEvery == 0 {
		o.ProgressEvery = defaultProgressEvery
	}
	return o
}

// RunUntilIdle runs the manager as [Manager.Run] does until nothing is left to do, and then stops it. That is when
//
//   - every cache is synced, every queue is empty, and no reconcile is in flight;
//   - every request given to [Manager.Trigger] has been processed;
//   - the caches and event handlers have seen all writes: those made through [Manager.Client], through clients of
//     [Manager.GetConfig], and to the reachable clusters of a fleet (package multicluster).
//
// Unless IdleOptions say otherwise, RunUntilIdle does not wait for a key that is due later, nor for one that has been
// retried often enough.
//
// RunUntilIdle does not wait for runnables that are not controllers, such as servers. It recognizes controllers by the
// methods Name, Stats and Work of reconcile.Controller, or by Loops for those that consist of several.
//
// If ctx ends first, no further key is started, work in flight may finish (see Options.GracefulTimeout), and the
// summary lists what was left. The summary is valid, if partial, whatever the error.
//
// Errors: an error of [Manager.Run]; the cause of ctx, if it ended first; a [FailedError] if keys failed; a
// reconcile.SelfTriggeredError if the reconciles of a key trigger each other, so that the controller would never come
// to rest.
func (m *Manager) RunUntilIdle(ctx context.Context, o IdleOptions) (Summary, error) {
	o = o.withDefaults()
	m.awaited.Add(m.record)
	defer m.awaited.Remove(m.record)
	started := time.Now()
	// running ends once the summary is made.
	running, stop := context.WithCancelCause(ownwrites.With(context.WithoutCancel(ctx), &m.awaited))
	defer stop(nil)
	ended := make(chan error, 1) // sent once, by the goroutine below
	go func() { ended <- m.Run(running) }()

	err := m.awaitIdle(ctx, o, started, ended)
	summary := m.summarize(started)
	if err == nil {
		stop(context.Cause(ctx))
		err = errors.Join(m.selfTriggered(), <-ended)
		if ctx.Err() != nil { // work in flight has ended since, and the queues have dropped their delayed keys
			due := summary.DueLater
			summary = m.summarize(started)
			summary.DueLater = due
		}
	}
	klog.FromContext(ctx).Info("Ran until idle", "processed", summary.Processed, "failed", len(summary.Failed),
		"dueLater", len(summary.DueLater), "duration", summary.Duration, "err", err)
	switch {
	case ctx.Err() != nil:
		return summary, errors.Join(fmt.Errorf("stopped before everything was done: %w", context.Cause(ctx)), err)
	case err == nil && len(summary.Failed) > 0:
		err = &FailedError{Keys: summary.Failed}
	}
	return summary, err
}

// errEnded is returned when the manager ended before it was idle.
var errEnded = errors.New("the manager ended before it was idle")

// selfTriggered returns the error of a controller that never comes to rest, or nil if there is none.
func (m *Manager) selfTriggered() error {
	for _, loop := range m.loops() {
		if l, ok := loop.(interface{ SelfTriggered() error }); ok {
			if err := l.SelfTriggered(); err != nil {
				return err
			}
		}
	}
	return nil
}

// awaitIdle returns nil when there is nothing more to do, when a controller would never come to rest, or when ctx is
// done. It returns an error when the manager has ended.
func (m *Manager) awaitIdle(ctx context.Context, o IdleOptions, started time.Time, ended <-chan error) error {
	look := time.NewTimer(0)
	defer look.Stop()
	var told time.Time
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
		case <-look.C:
		}
		if m.selfTriggered() != nil {
			return nil
		}
		now := time.Now()
		if o.Progress != nil && now.Sub(told) >= o.ProgressEvery {
			told = now
			o.Progress(m.howFar(started))
		}
		found, next := m.rest(ctx, o)
		look.Reset(min(max(next, idleTick), delayTick))
		switch found {
		case atRest:
			return nil
		case busy:
			unseen = 0
		case unseenWrites:
			if a := m.activity(); a != last {
				last, unseen = a, 0
			}
			if unseen++; unseen > unseenPatience {
				m.noteUnseen(ctx)
				unseen = 0
			}
		}
	}
}

// resting is the result of polling a manager.
type resting int

const (
	busy         resting = iota
	unseenWrites         // nothing moves, but the caches do not show some writes
	atRest
)

// rest reports whether there is anything left to do, and when to poll again. Work moves from a write to the cache, the
// handlers, the queue, the reconcile and the next write. Each step increments a counter. If two polls find nothing left
// and no counter rose between them, then no work slipped past the polls.
func (m *Manager) rest(ctx context.Context, o IdleOptions) (found resting, next time.Duration) {
	if !m.quiet() {
		return busy, idleTick
	}
	before := m.activity()
	behind := m.awaited.Behind(ctx)
	settled, next := m.settled(ctx, o)
	switch {
	case !settled:
		return busy, next
	case !m.quiet() || m.activity() != before:
		return busy, idleTick
	case behind:
		return unseenWrites, idleTick
	}
	return atRest, 0
}

// noteUnseen stops waiting for the writes that the caches may never show.
func (m *Manager) noteUnseen(ctx context.Context) {
	for _, w := range m.awaited.GiveUp() {
		klog.FromContext(ctx).V(2).Info("A write does not show in any cache", "resource", w.Resource,
			"object", klog.KRef(w.Namespace, w.Name))
	}
}

// activity sums up all counters. It changes whenever anything happens.
type activity struct {
	writes, events, delivered, adds, syncs uint64
}

func (m *Manager) activity() activity {
	a := activity{writes: m.awaited.Count()}
	for _, s := range m.informers.Stats() {
		a.events += uint64(s.Events + s.Batches + s.Lists)
		for _, h := range s.Handlers {
			a.delivered += uint64(h.Delivered + h.Merged)
		}
	}
	for _, loop := range m.loops() {
		s := loop.Stats()
		a.adds += s.Adds + s.Events + s.Deferred
		a.syncs += s.Syncs
	}
	return a
}

// quiet is the cheap part of the check: it returns false while anything obviously goes on.
func (m *Manager) quiet() bool {
	if now, _ := m.state.get(); now != running || m.awaited.Moving() {
		return false
	}
	for _, loop := range m.loops() {
		if s := loop.Stats(); s.InFlight > 0 || s.Queued > 0 {
			return false
		}
	}
	return true
}

// settled reports whether the caches are synced, the handlers are done, the controllers have started, and no delayed
// key has to be waited for. If only delayed keys are missing, next is when the first of them is due.
func (m *Manager) settled(ctx context.Context, o IdleOptions) (settled bool, next time.Duration) {
	if slices.ContainsFunc(m.informers.Health(), func(h informer.Health) bool { return !h.Synced }) {
		return false, 0
	}
	for _, s := range m.informers.Stats() {
		if s.Queued > 0 ||
			slices.ContainsFunc(s.Handlers,
				func(h informer.HandlerStats) bool { return h.Pending > 0 || h.Running > 0 }) {
			return false, 0
		}
	}
	const forever = time.Duration(math.MaxInt64)
	settled, next = true, delayTick
	later := forever // time until the first key that Enough decides about
	for _, loop := range m.loops() {
		w := loop.Work()
		if !w.Started || w.Ready > 0 || w.InFlight > 0 {
			return false, 0
		}
		failing := failingOf(w)
		for _, d := range w.Delayed {
			switch {
			case !o.awaits(d, failing[d.Key]):
			case o.mayHaveEnough(d):
				later = min(later, d.In)
			default:
				settled, next = false, min(next, d.In)
			}
		}
	}
	if settled && later < forever && !o.Enough(ctx) {
		return false, min(next, later)
	}
	return settled, next
}

// mayHaveEnough reports whether Enough decides about a delayed key. It does not decide about failing keys, which are
// always retried.
func (o IdleOptions) mayHaveEnough(d reconcile.Delayed) bool {
	return o.Enough != nil && d.Why != reconcile.WhyStale && d.Why != reconcile.WhyPaced && d.Why != reconcile.WhyRetry
}

// awaits reports whether RunUntilIdle waits for a delayed key.
func (o IdleOptions) awaits(d reconcile.Delayed, failing reconcile.Failing) bool {
	switch d.Why {
	case reconcile.WhyStale, reconcile.WhyPaced:
		return true
	case reconcile.WhyRetry:
		// Work does not list all failing keys if there are very many; d.Attempt is known for each.
		return max(failing.Attempts, d.Attempt) <= o.Retries
	}
	return o.Wait
}

func failingOf(w reconcile.Work) map[string]reconcile.Failing {
	failing := make(map[string]reconcile.Failing, len(w.Failing))
	for _, f := range w.Failing {
		failing[f.Key] = f
	}
	return failing
}

// loops returns all controllers of the manager.
func (m *Manager) loops() (loops []reconcile.Loop) {
	m.runnables.mu.Lock()
	defer m.runnables.mu.Unlock()
	for _, e := range m.runnables.entries {
		if l, ok := as[reconcile.Loop](e.runnable); ok {
			loops = append(loops, l)
		} else if l, ok := as[interface{ Loops() []reconcile.Loop }](e.runnable); ok {
			loops = append(loops, l.Loops()...)
		}
	}
	return loops
}

// Trigger adds the requests to the queues of the named controllers, or of all controllers whose keys are requests if
// controllers is empty. It may be called before Run and during Run.
//
// Errors: a named controller does not exist, or its keys are not requests.
func (m *Manager) Trigger(controllers []string, requests ...reconcile.Request) error {
	found := map[string]bool{}
	for _, loop := range m.loops() {
		l, ok := loop.(interface{ Enqueue(reconcile.Request) })
		if !ok || len(controllers) > 0 && !slices.Contains(controllers, loop.Name()) {
			continue
		}
		found[loop.Name()] = true
		for _, r := range requests {
			l.Enqueue(r)
		}
	}
	for _, name := range controllers {
		if !found[name] {
			return fmt.Errorf("manager: trigger: there is no controller %q that works on requests", name)
		}
	}
	return nil
}

// FailedError lists the keys that still failed when RunUntilIdle stopped waiting for them.
type FailedError struct{ Keys []FailedKey }

func (e *FailedError) Error() string {
	texts := make([]string, 0, len(e.Keys))
	for _, k := range e.Keys {
		texts = append(texts, fmt.Sprintf("%s %s: %v", k.Controller, k.Key, k.Err))
	}
	return fmt.Sprintf("%d failed: %s", len(e.Keys), shorten(texts))
}

// Unwrap returns the errors of the keys.
func (e *FailedError) Unwrap() []error {
	errs := make([]error, 0, len(e.Keys))
	for _, k := range e.Keys {
		errs = append(errs, k.Err)
	}
	return errs
}

// summarize returns the summary so far.
func (m *Manager) summarize(started time.Time) Summary {
	now := time.Now()
	s := Summary{Duration: now.Sub(started)}
	for _, loop := range m.loops() {
		w, stats := loop.Work(), loop.Stats()
		s.add(loop.Name(), stats)
		s.addLeft(loop)
		for _, d := range w.Delayed {
			if d.Why != reconcile.WhyRetry && d.Why != reconcile.WhyStale {
				s.DueLater = append(s.DueLater, DueKey{Controller: loop.Name(), Key: d.Key, Due: now.Add(d.In)})
			}
		}
		for _, f := range w.Failing {
			s.Failed = append(s.Failed,
				FailedKey{Controller: loop.Name(), Key: f.Key, Err: f.Err, Attempts: f.Attempts, Causes: f.Causes})
		}
	}
	slices.SortStableFunc(s.DueLater, func(a, b DueKey) int { return a.Due.Compare(b.Due) })
	slices.SortFunc(s.Failed,
		func(a, b FailedKey) int { return strings.Compare(a.Controller+" "+a.Key, b.Controller+" "+b.Key) })
	return s
}
