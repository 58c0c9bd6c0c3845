package garbagecollector

import "github.com/flyball-dev/flyball/reconcile"

// Stats counts what the collector did and knows.
type Stats struct {
	// Objects is the number of objects in the graph. Virtual is how many of them are known only as owners.
	Objects, Virtual int
	// Monitors is the number of resources that are watched.
	Monitors int
	// Deleted counts delete requests that were accepted.
	Deleted int64
	// Deletes and Orphans are the counters of the two queues.
	Deletes, Orphans reconcile.Stats
}

// Stats returns a snapshot of the counters.
func (c *collector) Stats() Stats {
	s := Stats{
		Monitors: len(c.monitors.list()), Deleted: c.deleted.Load(), Deletes: c.deletes.Stats(),
		Orphans: c.orphans.Stats(),
	}
	s.Objects, s.Virtual = c.graph.size()
	return s
}

// Collector is what New returns.
type Collector = collector
