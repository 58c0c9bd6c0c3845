package manager

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/reconcile"
)

// Remove takes a runnable away and returns when it has ended: it is stopped as at the stop of the manager, with its work in
// flight alive for Options.GracefulTimeout. Then its name is free, and the like of it may be added again.
//
// ctx ends the waiting early: the work in flight is then cancelled at once.
//
// Errors: no runnable of that name; another call removes or restarts it; what the runnable left undone; that it still runs, and with which keys: it is not removed
// then, and Remove may be called again.
func (m *Manager) Remove(ctx context.Context, name string) error {
	e, _, err := m.runnables.claim(name)
	if err != nil {
		return fmt.Errorf("manager: remove %s: %w", name, err)
	}
	defer m.runnables.unclaim(e)
	if m.runnables.takeUnstarted(e) {
		ended := e.warm.end(abandonAfter)
		m.forget(e)
		if !ended {
			return fmt.Errorf("manager: remove %s: its event handlers did not return within %v", name, abandonAfter)
		}
		return nil
	}
	klog.FromContext(ctx).Info("Removing", "runnable", name)
	e.endIntake()
	m.endWork(ctx, e)
	if !e.isDone() {
		return fmt.Errorf("manager: remove %s: still running: %s", name, describe([]*entry{e}))
	}
	m.runnables.remove(e)
	m.forget(e)
	if e.err != nil && !errors.Is(e.err, context.Canceled) {
		return fmt.Errorf("manager: remove %s: %w", name, e.err)
	}
	return nil
}

// Restart stops a runnable as [Manager.Remove] does and runs it anew, on the same caches: what a person does whose controller is
// hung, without losing the others. It does nothing to one that was not started yet.
//
// Errors: no runnable of that name; another call removes or restarts it; one that is no [Rebuilder]; that it still runs, or says of some of its work that it does
// (a reconcile.StuckError): no second one runs beside it.
func (m *Manager) Restart(ctx context.Context, name string) error {
	e, started, err := m.runnables.claim(name)
	if err != nil {
		return fmt.Errorf("manager: restart %s: %w", name, err)
	}
	defer m.runnables.unclaim(e)
	if _, ok := e.runnable.(Rebuilder); !ok {
		return fmt.Errorf("manager: restart %s: it cannot be built again: give Complete of package builder the reconciler, or wrap its constructor by manager.Rebuilt", name)
	}
	if !started {
		return nil
	}
	klog.FromContext(ctx).Info("Restarting", "runnable", name)
	e.endIntake()
	m.endWork(ctx, e)
	if !e.isDone() {
		return fmt.Errorf("manager: restart %s: still running: %s", name, describe([]*entry{e}))
	}
	if stuck := (*reconcile.StuckError)(nil); errors.As(e.err, &stuck) {
		return fmt.Errorf("manager: restart %s: %w", name, stuck)
	}
	if err := m.renew(e); err != nil {
		return fmt.Errorf("manager: restart %s: %w", name, err)
	}
	return nil
}

// endWork waits for the entry, whose intake has ended, first with its work alive, then without.
func (m *Manager) endWork(ctx context.Context, e *entry) {
	grace := time.NewTimer(max(m.options.GracefulTimeout, 0))
	defer grace.Stop()
	select {
	case <-e.done:
		return
	case <-ctx.Done():
	case <-grace.C:
	}
	e.cancelWork()
	wait([]*entry{e}, abandonAfter)
}

// forget lets go of what the manager and the runnable hold for one that is gone.
func (m *Manager) forget(e *entry) {
	if r, ok := as[interface{ Release() }](e.runnable); ok {
		r.Release()
	}
	if _, ok := e.stats(); ok && m.options.Metrics != nil {
		m.options.Metrics.Forget(e.name)
	}
}

// InFlight is how many reconciles run at this moment, in all controllers. It may be asked at any time and costs next to nothing.
func (m *Manager) InFlight() int {
	n := 0
	for _, e := range m.runnables.active() {
		if s, ok := e.stats(); ok {
			n += s.InFlight
		}
	}
	return n
}
