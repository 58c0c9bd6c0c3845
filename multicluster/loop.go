package multicluster

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
)

// Stats are the counters of the controller, all clusters together.
func (c *Controller) Stats() reconcile.Stats {
	s := c.inner.Stats()
	s.Events += c.events.Load()
	return s
}

// InFlight names the requests that are being reconciled, with the time each has been running, sorted.
func (c *Controller) InFlight() []string { return c.inner.InFlight() }

// Work tells what there is to do. It counts what the clusters' caches have not handed on yet as ready, and has not
// started while clusters are being reached for the first time, so that Manager.RunUntilIdle of the local manager
// waits for what a fleet has to do. It does not wait for a cluster that cannot be reached.
func (c *Controller) Work() reconcile.Work {
	w := c.inner.Work()
	c.mu.Lock()
	clusterControllers := c.clusterControllersLocked()
	c.mu.Unlock()
	w.Started = w.Started && c.parts.fleet.settled()
	for _, e := range clusterControllers {
		w.Started = w.Started && !e.waits()
		w.Ready += e.pending()
	}
	return w
}

// Health is nil when the controller reconciles, or could at once. A cluster that cannot be watched, and keys that
// fail or hang, are told by [Controller.Note].
func (c *Controller) Health() error { return c.keys.Alive() }

// Note says in words what is not well in single clusters; it is empty when all is.
func (c *Controller) Note() string {
	c.mu.Lock()
	clusterControllers := c.clusterControllersLocked()
	c.mu.Unlock()
	var notes []string
	for k, since := range c.keys.Hung() {
		notes = append(notes, fmt.Sprintf("%v hangs for %v", k, time.Since(since).Round(time.Second)))
	}
	for _, e := range clusterControllers {
		if err := e.why(); err != nil && e.incarnation.state() == Live {
			notes = append(notes, fmt.Sprintf("cluster %q: %v", e.incarnation.name, err))
		}
	}
	slices.Sort(notes)
	if more := len(notes) - mostNoted; more > 0 {
		notes = append(notes[:mostNoted], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(notes, "; ")
}

// pending is how many of the caches that the clusterController watches have something that no handler has heard of.
func (e *clusterController) pending() (n int) {
	e.mu.Lock()
	inputs := e.inputs
	n = e.held.Len()
	e.mu.Unlock()
	if e.incarnation.name == LocalCluster {
		return n // the local manager looks at its caches itself
	}
	for _, w := range inputs {
		s := w.stats()
		if s.Queued > 0 ||
			slices.ContainsFunc(s.Handlers,
				func(h informer.HandlerStats) bool { return h.Pending > 0 || h.Running > 0 }) {
			n++
		}
	}
	return n
}

// settled says that every cluster that will be here soon is.
func (m *Manager) settled() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range m.announcers {
		if !a.synced && a.err == nil {
			return false
		}
	}
	for _, s := range m.names {
		if s.since.IsZero() || s.state == Joining && s.attempts == 0 || s.state >= Draining {
			return false
		}
	}
	return m.start != nil || m.ran
}
