package manager

import (
	"time"

	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/workqueue"
)

// Summary is what a manager has done, and what is left.
type Summary struct {
	// Controllers are those of the manager, in the order in which they were added.
	Controllers []ControllerSummary
	// Processed counts reconciles, Errors those that failed, Peak is the most that ran at once in one controller.
	Processed, Errors uint64
	Peak              int
	// Failed are the keys whose last reconcile failed.
	Failed []FailedKey
	// DueLater are the keys that somebody asked to be reconciled later, the earliest first.
	DueLater []DueKey
	// Pending counts the keys that were queued, or did not end in time: 0 unless it was cut short. Left names them, each
	// controller's first hundred.
	Pending int
	Left    []LeftKey
	// Duration is how long it took.
	Duration time.Duration
}

// ControllerSummary is one controller's part.
type ControllerSummary struct {
	Name              string
	Processed, Errors uint64
	Peak              int
}

// FailedKey is a key whose last reconcile failed.
type FailedKey struct {
	Controller, Key string
	Err             error
	// Attempts is how often it failed in a row, Causes are why it ran for the last time.
	Attempts int
	Causes   []workqueue.Cause
}

// LeftKey is a key that was to be reconciled, but nobody came to it before the end.
type LeftKey struct{ Controller, Key string }

// mostLeft is how many keys of a controller are named.
const mostLeft = 100

// DueKey is a key that is to be reconciled later.
type DueKey struct {
	Controller, Key string
	Due             time.Time
}

// Progress is how it goes.
type Progress struct {
	// Processed counts reconciles so far, Errors those that failed. Queued keys wait, InFlight ones run; Peak is the most that ran at once
	// in one controller.
	Processed, Errors      uint64
	Queued, InFlight, Peak int
	Elapsed                time.Duration
}

func (s *Summary) add(name string, stats reconcile.Stats) {
	s.Controllers = append(s.Controllers, ControllerSummary{Name: name, Processed: stats.Syncs, Errors: stats.Errors, Peak: stats.Peak})
	s.Processed += stats.Syncs
	s.Errors += stats.Errors
	s.Peak = max(s.Peak, stats.Peak)
	s.Pending += stats.Queued + stats.InFlight
}

// addLeft is what a loop has not come to.
func (s *Summary) addLeft(loop reconcile.Loop) {
	l, ok := loop.(interface{ Left(limit int) []string })
	if !ok {
		return
	}
	for _, key := range l.Left(mostLeft) {
		s.Left = append(s.Left, LeftKey{Controller: loop.Name(), Key: key})
	}
}

func (m *Manager) howFar(started time.Time) Progress {
	p := Progress{Elapsed: time.Since(started)}
	for _, loop := range m.loops() {
		stats := loop.Stats()
		p.Processed += stats.Syncs
		p.Errors += stats.Errors
		p.Queued += stats.Queued
		p.InFlight += stats.InFlight
		p.Peak = max(p.Peak, stats.Peak)
	}
	return p
}
