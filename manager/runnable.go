package manager

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/internal/closed"
	"github.com/flyball-dev/flyball/internal/misuse"
	"github.com/flyball-dev/flyball/manager/leader"
	"github.com/flyball-dev/flyball/reconcile"
)

// Runnable is a part of the program that a [Manager] runs. Run blocks until ctx is done and everything that it started
// has ended. It may return nil earlier if it has nothing more to do. An error or a panic stops the manager. The package
// comment lists the optional methods of a runnable.
type Runnable interface {
	Run(ctx context.Context) error
}

// RunnableFunc is a [Runnable] without a name. The manager numbers those that it has.
type RunnableFunc func(ctx context.Context) error

// Run calls f.
func (f RunnableFunc) Run(ctx context.Context) error { return f(ctx) }

// Rebuilder is a [Runnable] that can be built again after it has run. A controller can run only once, so it must be
// rebuilt before it runs again when this process leads for the second time. See LeaderElection.Survive.
type Rebuilder interface {
	Runnable
	// Rebuild returns a runnable of the same name that has not run yet. It is called after Run has returned.
	Rebuild() (Runnable, error)
}

// Rebuilt returns a [Rebuilder] that gets its runnables from build: it calls build at once, and again for every further
// run.
func Rebuilt(build func() (Runnable, error)) (Rebuilder, error) {
	if build == nil {
		return nil, errors.New("manager: Rebuilt: the function that builds the runnable is nil")
	}
	first, err := build()
	if err != nil {
		return nil, err
	}
	if misuse.IsNil(first) {
		return nil, errors.New("manager: Rebuilt: the function built no runnable, and returned no error")
	}
	return &rebuilt{Runnable: first, build: build}, nil
}

type rebuilt struct {
	Runnable
	build func() (Runnable, error)
}

// Rebuild implements [Rebuilder].
func (r *rebuilt) Rebuild() (Runnable, error) { return Rebuilt(r.build) }

func (r *rebuilt) unwrap() Runnable { return r.Runnable }

// recovered calls run and turns a panic into an error. A faulty runnable then stops its manager in order, not the whole
// process, which may run other managers. recovered logs the stack, which is too long for an error.
func recovered(ctx context.Context, name string, run func(context.Context) error) (err error) {
	defer func() {
		if value := recover(); value != nil {
			panicked := &reconcile.PanicError{Value: value, Stack: debug.Stack()}
			klog.FromContext(ctx).Error(panicked, "Runnable panicked", "runnable", name,
				"stack", string(panicked.Stack))
			err = panicked
		}
	}()
	return run(ctx)
}

// ErrStopped is returned when something is added to a manager that is stopping or has stopped.
var ErrStopped = errors.New("the manager has stopped")

// leadership is whether a runnable needs the lease.
type leadership int

const (
	withoutLeader leadership = iota
	withLeader
)

// entry is a runnable and its state. A runnable that is rebuilt gets a new entry.
type entry struct {
	runnable Runnable
	name     string
	needs    leadership
	started  bool // guarded by the group's lock
	// changing is true while a caller removes, restarts or rebuilds the entry; no other caller may do so meanwhile.
	// Guarded by the group's lock.
	changing bool
	done     chan struct{} // closed once Run has returned and err is set; unbuffered
	err      error
	// endIntake and cancelWork end the two contexts of this entry. They are set when it starts.
	endIntake, cancelWork context.CancelFunc
	// warm is a running call of the method Warmup(ctx) error of a runnable that waits for the lease; nil if there is
	// none. It continues while Run runs, and ends before the entry is done. Guarded by the group's lock until the entry
	// starts.
	warm *part
}

func newEntry(r Runnable) *entry {
	e := &entry{runnable: r, needs: withLeader, done: make(chan struct{})}
	if n, ok := as[interface{ NeedLeaderElection() bool }](r); ok && !n.NeedLeaderElection() {
		e.needs = withoutLeader
	}
	if n, ok := as[interface{ Name() string }](r); ok {
		e.name = n.Name()
	} else {
		e.name = fmt.Sprintf("%T", r)
	}
	return e
}

// as returns r, or what it wraps, as a T, if it implements T.
func as[T any](r Runnable) (T, bool) {
	for {
		if t, ok := r.(T); ok {
			return t, true
		}
		w, ok := r.(interface{ unwrap() Runnable })
		if !ok {
			var none T
			return none, false
		}
		r = w.unwrap()
	}
}

func (e *entry) isDone() bool { return closed.Is(e.done) }

// inFlight returns the work in flight of the runnable, if it has the method InFlight.
func (e *entry) inFlight() []string {
	if r, ok := as[interface{ InFlight() []string }](e.runnable); ok {
		return r.InFlight()
	}
	return nil
}

// stats returns the statistics of a controller.
func (e *entry) stats() (reconcile.Stats, bool) {
	if c, ok := as[interface{ Stats() reconcile.Stats }](e.runnable); ok {
		return c.Stats(), true
	}
	return reconcile.Stats{}, false
}

// Remove stops and removes a runnable, and returns when it has ended. As when the manager stops, work in flight may
// continue for Options.GracefulTimeout; if ctx ends, it is cancelled at once. After Remove, another runnable of the
// same name may be added.
//
// Errors: there is no runnable of that name; another call is removing or restarting it; the error of the runnable; the
// runnable is still running, with its keys in flight. In the last case it is not removed, and Remove may be called
// again.
func (m *Manager) Remove(ctx context.Context, name string) error {
	e, _, err := m.runnables.claim(name)
	if err != nil {
		return fmt.Errorf("manager: remove %s: %w", name, err)
	}
	defer m.runnables.unclaim(e)
	if m.runnables.removeUnstarted(e) {
		late := e.warm.end(abandonAfter)
		m.forget(e)
		if late != nil {
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

// Restart stops a runnable as [Manager.Remove] does, and runs it again on the same caches. So a single controller, for
// example one that hangs, can be restarted without a restart of the process. Restart does nothing to a runnable that
// has not started.
//
// Errors: there is no runnable of that name; another call is removing or restarting it; the runnable is not a
// [Rebuilder]; the runnable is still running, or reports that some of its work still runs (a reconcile.StuckError). In
// the last case it is not started again.
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
	if err := m.rebuild(e); err != nil {
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

// forget releases the resources of a removed entry, in the runnable and in the metrics.
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

// warmer returns the function that starts a warm-up. The fence rejects writes with the warm-up's context unless this
// process leads. A warm-up that fails stops the manager.
func (m *Manager) warmer(intake context.Context, stop context.CancelCauseFunc) func(*entry) {
	fenced := leader.WithFence(intake, m.election.elector.Check)
	return func(e *entry) {
		r, ok := as[interface{ Warmup(context.Context) error }](e.runnable)
		if !ok {
			return
		}
		e.warm = startPart(fenced, e.name, func(own context.Context) error {
			if err := recovered(own, e.name, r.Warmup); err != nil && own.Err() == nil {
				stop(fmt.Errorf("%s: %w", e.name, err))
			}
			return nil
		})
	}
}

// endWarmups ends the warm-ups of the entries that were never started. It returns an error for each that does not end
// in time.
func (m *Manager) endWarmups() (left []error) {
	for _, e := range m.runnables.warming() {
		if e.warm.end(partTimeout) != nil {
			left = append(left, fmt.Errorf("%s: its event handlers did not return within %v", e.name, partTimeout))
		}
	}
	return left
}
