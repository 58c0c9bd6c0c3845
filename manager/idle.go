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

// IdleOptions configure [Manager.RunUntilIdle]. The zero value works.
type IdleOptions struct {
	// Retries is how often a failing key is tried again before nobody waits for it any more. 0 is 5; negative: not at all.
	Retries int
	// Wait makes keys that are due later be waited for, as long as the context allows; they are only listed otherwise.
	Wait bool
	// Enough ends the waiting for keys that are due later as soon as it returns true. It is asked now and then while nothing else is left
	// to do. Nil: it never does.
	Enough func(context.Context) bool
	// Progress is told how it goes, from one goroutine, at most every ProgressEvery. Nil: nobody is.
	Progress func(Progress)
	// ProgressEvery is at most how often. 0 is 100 ms.
	ProgressEvery time.Duration
}

const (
	defaultRetries       = 5
	defaultProgressEvery = 100 * time.Millisecond
	// idleTick is how often a working manager is looked at, and delayTick how often one that waits for its delayed keys only.
	idleTick  = time.Millisecond
	delayTick = 100 * time.Millisecond
	// unseenPatience is for how many looks everything must be at rest before a write is given up that perhaps no cache will show, because none selects
	// the object: looks, so that a process that was stopped for a while is as patient as others. At least a second.
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

// RunUntilIdle runs the manager as [Manager.Run] does, until there is nothing more to do, and stops it: every cache is synced, every
// queue empty, nothing is in flight, and the caches and event handlers are past everything that was written through [Manager.Client]
// and clients of [Manager.Config], and to the clusters of a fleet (package multicluster), unless one cannot be reached. What was given to [Manager.Trigger] before is done, too. A key that fails counts as done when it
// was retried often enough, one that is due later does at once, unless IdleOptions say otherwise.
//
// Runnables that are no controllers, such as servers, are not waited for. Controllers are seen through the methods Name, Stats
// and Work of reconcile.Controller, or Loops for those that consist of several.
//
// When ctx ends first, no further key is begun, what is in flight may finish (see Options.GracefulTimeout), and what was left is in the
// summary. That is valid, if partial, whatever the error.
//
// Errors: what [Manager.Run] fails with; the cause of ctx, if that ended first; a [FailedError] if keys failed; a
// reconcile.SelfTriggeredError if the reconciles of a key cause each other, so that it would never come to rest.
func (m *Manager) RunUntilIdle(ctx context.Context, o IdleOptions) (Summary, error) {
	o = o.withDefaults()
	m.books.Add(m.writes)
	defer m.books.Remove(m.writes)
	started := time.Now()
	running, stop := context.WithCancelCause(ownwrites.With(context.WithoutCancel(ctx), &m.books)) // ends when what is left was looked at
	defer stop(nil)
	ended := make(chan error, 1) // sent once, by the goroutine below
	go func() { ended <- m.Run(running) }()

	err := m.awaitIdle(ctx, o, started, ended)
	summary := m.summarize(started)
	if err == nil {
		stop(context.Cause(ctx))
		err = errors.Join(m.selfTriggered(), <-ended)
		if ctx.Err() != nil { // what was in flight has ended meanwhile, and its queue has dropped what is due later
			due := summary.DueLater
			summary = m.summarize(started)
			summary.DueLater = due
		}
	}
	klog.FromContext(ctx).Info("Ran until idle", "processed", summary.Processed, "failed", len(summary.Failed), "dueLater", len(summary.DueLater), "duration", summary.Duration, "err", err)
	switch {
	case ctx.Err() != nil:
		return summary, errors.Join(fmt.Errorf("stopped before everything was done: %w", context.Cause(ctx)), err)
	case err == nil && len(summary.Failed) > 0:
		err = &FailedError{Keys: summary.Failed}
	}
	return summary, err
}

// errEnded says that the manager ended before it was idle.
var errEnded = errors.New("the manager ended before it was idle")

// selfTriggered is the error of a controller that never comes to rest; nil if there is none.
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

// awaitIdle returns nil when there is nothing more to do, or never will be, or ctx is done; an error when the manager has ended.
func (m *Manager) awaitIdle(ctx context.Context, o IdleOptions, started time.Time, ended <-chan error) error {
	look := time.NewTimer(0)
	defer look.Stop()
	var told time.Time
	var last activity
	unseen := 0 // how many looks found the same writes missing, and nothing else
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

// resting is what a look at a manager finds.
type resting int

const (
	busy         resting = iota
	unseenWrites         // nothing moves, but some writes did not come back
	atRest
)

// rest says whether there is anything left to do, and when to look again. Work moves from a write to the cache, the handlers, the
// queue, the reconcile and the next write, and is counted at every step by something that only rises: if nothing is left at two
// looks, and nothing rose between, then nothing had just moved past the look.
func (m *Manager) rest(ctx context.Context, o IdleOptions) (found resting, next time.Duration) {
	if !m.quiet() {
		return busy, idleTick
	}
	before := m.activity()
	behind := m.books.Behind(ctx)
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

// noteUnseen gives up waiting for the writes that the caches may never show.
func (m *Manager) noteUnseen(ctx context.Context) {
	for _, w := range m.books.GiveUp() {
		klog.FromContext(ctx).V(2).Info("A write does not show in any cache", "resource", w.Resource, "object", klog.KRef(w.Namespace, w.Name))
	}
}

// activity is the sum of everything that is counted: it changes when anything happens.
type activity struct {
	writes, events, delivered, adds, syncs uint64
}

func (m *Manager) activity() activity {
	a := activity{writes: m.books.Count()}
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

// quiet is the part of the question that costs little: false, while anything obviously goes on.
func (m *Manager) quiet() bool {
	if now, _ := m.state.get(); now != running || m.books.Moving() {
		return false
	}
	for _, loop := range m.loops() {
		if s := loop.Stats(); s.InFlight > 0 || s.Queued > 0 {
			return false
		}
	}
	return true
}

// settled says whether caches are synced, handlers are done, controllers have started, and no delayed key is waited for; else,
// if that is all that is missing, when the first of those is due.
func (m *Manager) settled(ctx context.Context, o IdleOptions) (settled bool, next time.Duration) {
	if slices.ContainsFunc(m.informers.Health(), func(h informer.Health) bool { return !h.Synced }) {
		return false, 0
	}
	for _, s := range m.informers.Stats() {
		if s.Queued > 0 || slices.ContainsFunc(s.Handlers, func(h informer.HandlerStats) bool { return h.Pending > 0 || h.Running > 0 }) {
			return false, 0
		}
	}
	const forever = time.Duration(math.MaxInt64)
	settled, next = true, delayTick
	later := forever // until the first key that Enough decides about
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

// mayHaveEnough reports whether Enough decides about a delayed key that is waited for: a failing one is retried in any case.
func (o IdleOptions) mayHaveEnough(d reconcile.Delayed) bool {
	return o.Enough != nil && d.Why != reconcile.WhyStale && d.Why != reconcile.WhyPaced && d.Why != reconcile.WhyRetry
}

// awaits says whether a delayed key is waited for.
func (o IdleOptions) awaits(d reconcile.Delayed, failing reconcile.Failing) bool {
	switch d.Why {
	case reconcile.WhyStale, reconcile.WhyPaced:
		return true
	case reconcile.WhyRetry:
		return max(failing.Attempts, d.Attempt) <= o.Retries // Not every one of very many keys is known to fail.
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

// loops are all controllers that were given to the manager.
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

// Trigger has every controller whose keys are requests reconcile these: those named, or all if controllers is empty. It may be called
// before Run and while it runs.
//
// Errors: a controller that does not exist, or whose keys are something else.
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

// FailedError says that keys failed until nobody waited for them any more.
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

// summarize is how it stands.
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
			s.Failed = append(s.Failed, FailedKey{Controller: loop.Name(), Key: f.Key, Err: f.Err, Attempts: f.Attempts, Causes: f.Causes})
		}
	}
	slices.SortStableFunc(s.DueLater, func(a, b DueKey) int { return a.Due.Compare(b.Due) })
	slices.SortFunc(s.Failed, func(a, b FailedKey) int { return strings.Compare(a.Controller+" "+a.Key, b.Controller+" "+b.Key) })
	return s
}
