package manager

import (
	"time"

	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/workqueue"
)

// Summary reports the work that a manager has done and the work that is left.
type Summary struct {
	// Controllers are the manager's controllers, in the order in which they were added.
	Controllers []ControllerSummary
	// Processed counts the reconciles and Errors those that failed. Peak is the largest number that ran at once in one
	// controller.
	Processed, Errors uint64
	Peak              int
	// Failed are the keys whose last reconcile failed.
	Failed []Key
	// DueLater are the keys that are to be reconciled later, earliest first.
	DueLater []Key
	// Pending counts the keys that were still queued or in flight; it is 0 unless the run ended early. Left has the
	// first hundred of each controller.
	Pending int
	Left    []Key
	// Duration is how long the run took.
	Duration time.Duration
}

// ControllerSummary is the summary of one controller.
type ControllerSummary struct {
	Name              string
	Processed, Errors uint64
	Peak              int
}

// Key is a key that is left to be reconciled.
type Key struct {
	Controller, Key string
	// Err is why the last reconcile failed, Attempts how often the key failed in a row, and Causes are the reasons for
	// its last run. They are zero for a key that did not fail.
	Err      error
	Attempts int
	Causes   []workqueue.Cause
	// Due is when a key of DueLater is to be reconciled.
	Due time.Time
}

// maxLeft is the maximum number of keys listed for one controller.
const maxLeft = 100

// Progress is an interim report of [Manager.RunUntilIdle].
type Progress struct {
	// Processed counts the reconciles so far and Errors those that failed. Queued is the number of waiting keys,
	// InFlight the number of running reconciles, and Peak the largest number that ran at once in one controller.
	Processed, Errors      uint64
	Queued, InFlight, Peak int
	Elapsed                time.Duration
}

func (s *Summary) add(name string, stats reconcile.Stats) {
	s.Controllers = append(s.Controllers,
		ControllerSummary{Name: name, Processed: stats.Syncs, Errors: stats.Errors, Peak: stats.Peak})
	s.Processed += stats.Syncs
	s.Errors += stats.Errors
	s.Peak = max(s.Peak, stats.Peak)
	s.Pending += stats.Queued + stats.InFlight
}

// addLeft adds the keys that a loop has not processed.
func (s *Summary) addLeft(loop reconcile.Loop) {
	l, ok := loop.(interface{ Left(limit int) []string })
	if !ok {
		return
	}
	for _, key := range l.Left(maxLeft) {
		s.Left = append(s.Left, Key{Controller: loop.Name(), Key: key})
	}
}

func (m *Manager) currentProgress(started time.Time) Progress {
	p := Progress{Elapsed: time.Since(started)}
	for _, loop := range m.Controllers() {
		stats := loop.Stats()
		p.Processed += stats.Syncs
		p.Errors += stats.Errors
		p.Queued += stats.Queued
		p.InFlight += stats.InFlight
		p.Peak = max(p.Peak, stats.Peak)
	}
	return p
}
