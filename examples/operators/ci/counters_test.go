package main

import (
	"sync"

	"github.com/flyball-dev/flyball/manager/metrics"
	"github.com/flyball-dev/flyball/reconcile"
)

// counters are the metrics of a fleet's hub. They record the counts of its controllers.
type counters struct {
	*metrics.Registry

	mu    sync.Mutex
	stats map[string]func() reconcile.Stats
}

func newCounters() *counters {
	return &counters{Registry: metrics.New(), stats: map[string]func() reconcile.Stats{}}
}

// Controller implements manager.Metrics.
func (c *counters) Controller(name string, stats func() reconcile.Stats) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats[name] = stats
}

// Counted returns the counts of the controller of that name, on the hub of the fleet that was made last.
func (w *World) Counted(controller string) reconcile.Stats {
	w.Helper()
	w.counters.mu.Lock()
	stats := w.counters.stats[controller]
	w.counters.mu.Unlock()
	if stats == nil {
		w.Fatalf("there is no controller %q", controller)
	}
	return stats()
}
