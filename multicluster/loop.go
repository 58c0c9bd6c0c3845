package multicluster

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
)

// Stats returns the counters of the controller, summed over all clusters.
func (c *Controller) Stats() reconcile.Stats {
	s := c.inner.Stats()
	s.Events += c.events.Load()
	return s
}

// InFlight returns the requests that are being reconciled, each with the time it has been running, sorted.
func (c *Controller) InFlight() []string { return c.inner.InFlight() }

// Work returns what the controller has to do. It counts events that the caches have not delivered yet as ready. Started
// is false while clusters are being connected for the first time. So Manager.RunUntilIdle of the local manager waits
// for the work of the whole fleet. It does not wait for a cluster that cannot be reached.
func (c *Controller) Work() reconcile.Work {
	c.mu.Lock()
	clusterControllers := c.clusterControllersLocked()
	c.mu.Unlock()
	// What a cluster still holds back is read before the queue that it goes to.
	started, pending := c.spec.fleet.settled(), 0
	for _, cc := range clusterControllers {
		started = started && !cc.isFilling()
		pending += cc.pending()
	}
	w := c.inner.Work()
	w.Started = w.Started && started
	w.Ready += pending
	return w
}

// Health returns nil when the controller reconciles, or could at once. [Controller.Note] reports clusters that cannot
// be watched, and keys that fail or hang.
func (c *Controller) Health() error { return c.keys.Alive() }

// Note returns, in words, the problems of single clusters; it is empty when there are none.
func (c *Controller) Note() string {
	c.mu.Lock()
	clusterControllers := c.clusterControllersLocked()
	c.mu.Unlock()
	var notes []string
	for k, since := range c.keys.Hung() {
		notes = append(notes, fmt.Sprintf("%v hangs for %v", k, time.Since(since).Round(time.Second)))
	}
	for _, cc := range clusterControllers {
		if err := cc.syncError(); err != nil && cc.incarnation.state() == Live {
			notes = append(notes, fmt.Sprintf("cluster %q: %v", cc.incarnation.name, err))
		}
	}
	slices.Sort(notes)
	if more := len(notes) - maxNoted; more > 0 {
		notes = append(notes[:maxNoted], fmt.Sprintf("and %d more", more))
	}
	return strings.Join(notes, "; ")
}

// pending returns the number of requests held back, plus the number of caches with events that not all handlers have
// got.
func (cc *clusterController) pending() (n int) {
	cc.mu.Lock()
	inputs := cc.inputs
	n = cc.held.Len()
	cc.mu.Unlock()
	if cc.incarnation.name == LocalCluster {
		return n // The local manager counts its caches itself.
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

// settled reports whether no cluster is about to join or leave: all providers have announced theirs, and each of these
// was tried at least once.
func (m *Manager) settled() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, a := range m.announcers {
		if !a.synced && a.err == nil {
			return false
		}
	}
	for _, n := range m.names {
		if n.since.IsZero() || n.state == Joining && n.attempts == 0 || n.state >= Draining {
			return false
		}
	}
	return m.start != nil || m.ran
}
