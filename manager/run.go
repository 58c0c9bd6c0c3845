package manager

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/internal/workctx"
	"github.com/flyball-dev/flyball/manager/leader"
)

const (
	// abandonAfter is how long a runnable may take to return after the context of its work is cancelled. A controller
	// needs less to report which of its keys are stuck.
	abandonAfter = 3 * time.Second
	// partTimeout is how long informers and servers may take to end. They have no work to finish.
	partTimeout = 2 * time.Second
)

// stage is a stage of a manager's life. It only moves forward.
type stage int

const (
	created stage = iota
	reaching
	running
	stopping
	ended
)

// state guards the stage.
type state struct {
	mu  sync.Mutex
	now stage
	err error // while reaching: why the server does not answer
}

func (s *state) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.now != created {
		return false
	}
	s.now = reaching
	return true
}

func (s *state) set(next stage) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now, s.err = max(s.now, next), nil
}

func (s *state) note(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = err
}

func (s *state) get() (stage, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now, s.err
}

// part is a goroutine that the manager ends in its turn: one of its own, which outlives the stop, or a warm-up.
type part struct {
	name string
	stop context.CancelFunc
	done chan struct{} // closed by the part's goroutine when err is set
	err  error
}

// startPart calls run in a goroutine.
func startPart(ctx context.Context, name string, run func(context.Context) error) *part {
	own, stop := context.WithCancel(ctx)
	p := &part{name: name, stop: stop, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		defer stop()
		p.err = run(own)
	}()
	return p
}

// end stops the part and waits for it, for at most patience. It returns the part's error; nil for a nil part.
func (p *part) end(patience time.Duration) error {
	if p == nil {
		return nil
	}
	p.stop()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-p.done:
		return p.err
	case <-timer.C:
		return fmt.Errorf("%s did not stop within %v", p.name, patience)
	}
}

// runParts starts informers, the event sender and runnables, waits for the stop, and ends them and hooks in order. If
// ctx did not cause the stop, cause is the reason: a runnable, serving or hooks has failed, or the lease is lost.
func (m *Manager) runParts(ctx context.Context, serving, hooks *part) (undone []error, cause error) {
	logger := klog.FromContext(ctx)
	intake, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	beyond := context.WithoutCancel(ctx) // Work in flight and the parts outlive the stop.
	work, cancelWork := context.WithCancel(beyond)
	defer cancelWork()

	m.informers.Start(beyond) // Runnables may read from now on.
	informers := startPart(beyond, "informers", func(ctx context.Context) error {
		<-ctx.Done()
		m.informers.Shutdown()
		return nil
	})
	sender := startPart(beyond, "events", m.events.Run)
	m.state.set(running)
	m.runnables.startAll(withoutLeader, starter(intake, work, stop))
	var campaign *part
	if m.election == nil {
		m.startLed(intake, work, stop)
	} else {
		lead := func(context.Context) error { return m.lead(intake, work, stop) }
		campaign = startPart(beyond, "leader election", lead)
	}
	names := namesOf(m.runnables.all())
	logger.Info("Manager started", "runnables", names)
	if len(names) == 0 && len(m.informers.Health()) == 0 && len(m.hooks.Registered()) == 0 {
		logger.Info(
			"Nothing to do: the manager has no controller, no other runnable, no webhook and no cache. Was Complete " +
				"or Add called for this manager?",
		)
	}

	select {
	case <-intake.Done():
	case <-serving.done:
		stop(serving.err)
	case <-hooks.done:
		stop(hooks.err)
	}
	if ctx.Err() == nil {
		cause = context.Cause(intake)
	}
	m.state.set(stopping)
	m.runnables.close()
	logger.Info("Manager stopping", "reason", reasonOf(intake))
	undone = append(m.drain(ctx, m.patience(cause), cancelWork), m.endWarmups()...)
	guarded := m.runnables.activeWith(withLeader)
	workRemains := slices.ContainsFunc(guarded, func(e *entry) bool { return !e.isDone() })
	if m.election != nil {
		m.election.events.recordEnd()
	}
	undone = appendError(undone, sender.end(m.eventsTimeout()))
	if campaign != nil {
		err := m.election.handOver(campaign, workRemains)
		if !errors.Is(err, leader.ErrLost) || !errors.Is(cause, leader.ErrLost) { // otherwise cause reports it
			undone = appendError(undone, err)
		}
	}
	if err := m.endWebhooks(hooks); !errors.Is(cause, err) {
		undone = appendError(undone, err)
	}
	undone = appendError(undone, informers.end(partTimeout))
	return undone, cause
}

// reasonOf returns in words why ctx has ended. A requested stop must not read "context canceled", which looks like a
// fault.
func reasonOf(ctx context.Context) string {
	if cause := context.Cause(ctx); cause != context.Canceled { //nolint:errorlint // An error that wraps it says more.
		return cause.Error()
	}
	return "asked to stop"
}

// eventsTimeout returns a timeout longer than the event sender's own.
func (m *Manager) eventsTimeout() time.Duration {
	return max(m.options.Events.DrainTimeout, 5*time.Second) + partTimeout
}

// starter returns the function that starts a runnable. The context of the runnable ends when intake ends, and carries a
// second context for work in flight, which ends with work. Both can also be ended for a single runnable. A runnable
// that fails before its context has ended stops the manager.
func starter(intake, work context.Context, stop context.CancelCauseFunc) func(*entry) {
	return func(e *entry) {
		own, endIntake := context.WithCancel(intake)
		ownWork, cancelWork := context.WithCancel(work)
		e.endIntake, e.cancelWork = endIntake, cancelWork
		go func() {
			defer close(e.done)
			defer cancelWork()
			defer endIntake()
			err := recovered(workctx.With(own, ownWork), e.name, e.runnable.Run)
			if e.warm != nil {
				e.warm.stop()
				<-e.warm.done
			}
			if err != nil && own.Err() == nil && !errors.Is(err, leader.ErrLost) { // the elector reports a lost lease
				stop(fmt.Errorf("%s: %w", e.name, err))
				return // reported as the cause, not as work left undone
			}
			if err != nil && !errors.Is(err, context.Canceled) {
				e.err = err
			}
		}()
	}
}

// patience returns how long work in flight may continue after the stop. If the lease was lost, work must end before
// another process can acquire it.
func (m *Manager) patience(cause error) time.Duration {
	patience := max(m.options.GracefulTimeout, 0)
	if errors.Is(cause, leader.ErrLost) {
		patience = min(patience, m.options.LeaderElection.Margin())
	}
	return patience
}

// drain waits until all runnables have returned. It cancels their work when patience is over. It returns the errors of
// the runnables, and one error that names those that did not return, with their keys.
func (m *Manager) drain(ctx context.Context, patience time.Duration, cancelWork context.CancelFunc) []error {
	logger := klog.FromContext(ctx)
	active := m.runnables.active()
	late := waitAndLog(ctx, active, patience)
	if len(late) == 0 {
		cancelWork()
		return m.runnables.errors()
	}
	cut := describe(late)
	cancelWork()
	logger.Info("Cancelling work in flight", "runnables", cut, "duration", patience)
	stuck := wait(active, abandonAfter)
	undone := []error{cutShort(fmt.Sprintf("work cut short after %v: %s", patience, cut))}
	undone = append(undone, m.runnables.errors()...)
	if len(stuck) > 0 {
		undone = append(undone, fmt.Errorf("still running %v later: %s", abandonAfter, describe(stuck)))
	}
	return undone
}

// cutShort is the error of work that was cancelled because the time for the stop was over. errors.Is matches it with
// context.DeadlineExceeded.
type cutShort string

func (c cutShort) Error() string      { return string(c) }
func (cutShort) Is(target error) bool { return target == context.DeadlineExceeded }

// While a manager waits for work in flight, it logs the runnables: after logAfter, and then every logEvery.
const (
	logAfter = time.Second
	logEvery = 5 * time.Second
)

// waitAndLog is like wait, and logs the runnables for which it waits.
func waitAndLog(ctx context.Context, entries []*entry, patience time.Duration) []*entry {
	deadline := time.Now().Add(patience)
	for pause := logAfter; ; pause = logEvery {
		late := wait(entries, min(pause, time.Until(deadline)))
		left := time.Until(deadline)
		if len(late) == 0 || left <= 0 {
			return late
		}
		klog.FromContext(ctx).Info("Waiting for work in flight", "runnables", describe(late),
			"timeout", left.Round(time.Second))
	}
}

// UndoneError lists what a manager left undone when it stopped: reconciles that did not end, with their keys; events
// that were not sent; a lease that was not released.
type UndoneError struct {
	Left []error
}

// Error returns the list on one line.
func (e *UndoneError) Error() string {
	texts := make([]string, 0, len(e.Left))
	for _, err := range e.Left {
		texts = append(texts, strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return "left undone: " + strings.Join(texts, "; ")
}

// Unwrap returns Left.
func (e *UndoneError) Unwrap() []error { return e.Left }

func appendError(errs []error, err error) []error {
	if err == nil {
		return errs
	}
	return append(errs, err)
}

// joinErrors joins two errors on one line; either may be nil.
func joinErrors(a, b error) error {
	switch {
	case a == nil:
		return b
	case b == nil:
		return a
	}
	return fmt.Errorf("%w; %w", a, b)
}
