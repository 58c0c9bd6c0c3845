package manager

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/reconcile"
)

// Remove stops and removes a runnable, and returns when it has ended. Like the stop of the manager, it lets work in
// flight go on for Options.GracefulTimeout. After that, another runnable of the same name may be added.
//
// When ctx ends, Remove cancels the work in flight at once.
//
// Errors: there is no runnable of that name; another call is removing or restarting it; what the runnable left undone;
// the runnable is still running, with the keys it works on. In the last case it is not removed, and Remove may be
// called again.
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

// Restart stops a runnable as [Manager.Remove] does and runs it again on the same caches. It serves to restart one hung
// controller without losing the others. It does nothing to a runnable that was not started yet.
//
// Errors: there is no runnable of that name; another call is removing or restarting it; the runnable is not a
// [Rebuilder]; the runnable is still running, or reports that some of its work is (a reconcile.StuckError). In the last
// case no second one is started beside it.
func (m *Manager) Restart(ctx context.Context, name string) error {
	e, started, err := m.runnables.claim(name)
	if err != nil {
		return fmt.Errorf("manager: restart %s: %w", name, err)
	}
	defer m.runnables.unclaim(e)
	if _, ok := e.runnable.(Rebuilder); !ok {
		return fmt.Errorf(
			"manager: restart %s: it cannot be built again: give Complete of package builder the reconciler, or wrap "+
				"its constructor by manager.Rebuilt", name,
		)
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

// endWork waits for an entry whose intake has ended. When the grace period or ctx ends, it cancels the entry's work.
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

// forget releases what the manager and the runnable hold for a removed entry.
func (m *Manager) forget(e *entry) {
	if r, ok := as[interface{ Release() }](e.runnable); ok {
		r.Release()
	}
	if _, ok := e.stats(); ok && m.options.Metrics != nil {
		m.options.Metrics.Forget(e.name)
	}
}

// InFlight returns how many reconciles are running in all controllers. It may be called at any time and is cheap.
func (m *Manager) InFlight() int {
	n := 0
	for _, e := range m.runnables.active() {
		if s, ok := e.stats(); ok {
			n += s.InFlight
		}
	}
	return n
}
