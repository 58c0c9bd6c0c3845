package manager

import (
	"context"
	"fmt"
	"time"

	"github.com/flyball-dev/flyball/manager/leader"
)

// warmup is the warm-up of a runnable that waits for the lease: a call of its method Warmup(ctx) error, if it has one.
// It goes on while Run runs, and ends before the entry is done.
type warmup struct {
	stop context.CancelFunc
	done chan struct{} // closed by the warm-up's goroutine when Warmup has returned; unbuffered
}

func (w *warmup) isDone() bool {
	select {
	case <-w.done:
		return true
	default:
		return false
	}
}

// end stops the warm-up and waits for it, for at most patience. It reports whether the warm-up has ended.
func (w *warmup) end(patience time.Duration) bool {
	if w == nil {
		return true
	}
	w.stop()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-w.done:
		return true
	case <-timer.C:
		return false
	}
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
		own, cancel := context.WithCancel(fenced)
		w := &warmup{stop: cancel, done: make(chan struct{})}
		e.warm = w
		go func() {
			defer close(w.done)
			defer cancel()
			if err := recovered(own, e.name, r.Warmup); err != nil && own.Err() == nil {
				stop(fmt.Errorf("%s: %w", e.name, err))
			}
		}()
	}
}

// endWarmups ends the warm-ups of the entries that were never started. It returns an error for each that does not end
// in time.
func (m *Manager) endWarmups() (left []error) {
	for _, e := range m.runnables.warming() {
		if !e.warm.end(partTimeout) {
			left = append(left, fmt.Errorf("%s: its event handlers did not return within %v", e.name, partTimeout))
		}
	}
	return left
}
