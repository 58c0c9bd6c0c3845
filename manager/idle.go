package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/manager/internal/idle"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/writes"
)

// IdleOptions configures [Manager.RunUntilIdle]. The zero value works.
type IdleOptions struct {
	// Retries is how often a failing key is retried before RunUntilIdle stops waiting for it. Zero means 5; negative
	// means that it does not wait at all.
	Retries int
	// Wait makes RunUntilIdle wait for keys that are due later, as long as the context allows. Without it, they are
	// only listed.
	Wait bool
	// Enough ends the wait for keys that are due later when it returns true. It is called from time to time while
	// nothing else is left to do. Nil means that the wait does not end early.
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
)

func (o IdleOptions) withDefaults() IdleOptions {
	o.Retries = cmp.Or(o.Retries, defaultRetries)
	o.ProgressEvery = cmp.Or(o.ProgressEvery, defaultProgressEvery)
	return o
}

// RunUntilIdle runs the manager as [Manager.Run] does until nothing is left to do, and then stops it. Nothing is left
// to do when
//
//   - every cache is synced, every queue is empty, and no reconcile is in flight;
//   - every request given to [Manager.Trigger] has been processed;
//   - the caches and event handlers have seen all writes: those made through [Manager.GetClient], through clients of
//     [Manager.GetConfig], and to the reachable clusters of a fleet (package multicluster).
//
// By default, RunUntilIdle does not wait for keys that are due later, nor for keys that have been retried
// IdleOptions.Retries times.
//
// RunUntilIdle does not wait for runnables that are not controllers, such as servers. It recognizes controllers by the
// methods Name, Stats and Work of reconcile.Controller, or by Loops for those that consist of several.
//
// If ctx ends first, no further reconcile starts, work in flight may finish (see Options.GracefulTimeout), and the
// summary lists the remaining keys. The summary is valid with every error, though perhaps incomplete.
//
// Errors: an error of [Manager.Run]; the cause of ctx, if it ended first; a [FailedError] if keys failed; a
// reconcile.SelfTriggeredError if the reconciles of a key trigger each other, so that the controller would never be
// idle.
func (m *Manager) RunUntilIdle(ctx context.Context, o IdleOptions) (Summary, error) {
	o = o.withDefaults()
	m.writes.Add(m.record)
	defer m.writes.Remove(m.record)
	started := time.Now()
	// running ends once the summary is made.
	running, stop := context.WithCancelCause(writes.WithAwaited(context.WithoutCancel(ctx), &m.writes))
	defer stop(nil)
	ended := make(chan error, 1) // sent once, by the goroutine below
	go func() { ended <- m.Run(running) }()

	w := m.watcher(o, started)
	err := w.Wait(ctx, ended)
	summary := m.summarize(started)
	if err == nil {
		stop(context.Cause(ctx))
		err = errors.Join(w.SelfTriggered(), <-ended)
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

// watcher returns a Watcher that waits until the manager is idle and reports progress.
func (m *Manager) watcher(o IdleOptions, started time.Time) *idle.Watcher {
	var reported time.Time
	return &idle.Watcher{
		Running: func() bool { now, _ := m.state.get(); return now == running },
		Loops:   m.Controllers, Informers: m.informers, Writes: &m.writes,
		Retries: o.Retries, DueLater: o.Wait, Enough: o.Enough,
		BeforePoll: func() {
			if now := time.Now(); o.Progress != nil && now.Sub(reported) >= o.ProgressEvery {
				reported = now
				o.Progress(m.currentProgress(started))
			}
		},
	}
}

// WaitUntilIdle waits until the manager has started and has nothing left to do, or until ctx ends. It does not wait for
// failing keys or for keys that are due later, and it does not stop the manager.
func (m *Manager) WaitUntilIdle(ctx context.Context) {
	w := m.watcher(IdleOptions{}, time.Now())
	w.Running = func() bool { return m.Ready() == nil }
	w.Writes = &writes.Awaited{} // Writes are counted only during RunUntilIdle.
	_ = w.Wait(ctx, nil)         // With a nil channel, Wait returns no error.
}

// Controllers returns all controllers of the manager.
func (m *Manager) Controllers() (loops []reconcile.Loop) {
	for _, e := range m.runnables.all() {
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
	for _, loop := range m.Controllers() {
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
type FailedError struct{ Keys []Key }

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
	for _, loop := range m.Controllers() {
		w, stats := loop.Work(), loop.Stats()
		s.add(loop.Name(), stats)
		s.addLeft(loop)
		for _, d := range w.Delayed {
			if d.Why != reconcile.WhyRetry && d.Why != reconcile.WhyStale {
				s.DueLater = append(s.DueLater, Key{Controller: loop.Name(), Key: d.Key, Due: now.Add(d.In)})
			}
		}
		for _, f := range w.Failing {
			s.Failed = append(s.Failed,
				Key{Controller: loop.Name(), Key: f.Key, Err: f.Err, Attempts: f.Attempts, Causes: f.Causes})
		}
	}
	slices.SortStableFunc(s.DueLater, func(a, b Key) int { return a.Due.Compare(b.Due) })
	slices.SortFunc(s.Failed,
		func(a, b Key) int { return strings.Compare(a.Controller+" "+a.Key, b.Controller+" "+b.Key) })
	return s
}
