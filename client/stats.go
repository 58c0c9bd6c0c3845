package client

import (
	"errors"
	"sync/atomic"
	"time"
)

// Stats counts what reading one's own writes took, since the [Cluster] was made.
type Stats struct {
	// Waits are the reads that the answers of writes were not enough for: they waited for the cache to show an own
	// write, or asked the server what became of one. Waited is how long they took for that, all together.
	Waits  uint64
	Waited time.Duration
	// Stale are the reads, among them, that came back with [ErrStale] or were answered by the server instead.
	Stale uint64
	// Unseen is how many own writes some cache has not shown yet, and Unknown of how many nobody knows what came of
	// them.
	Unseen, Unknown int
}

// Stats is a snapshot of the counters. It takes a lock per resource that was written.
func (c *Cluster) Stats() Stats {
	s := Stats{
		Waits: c.waits.count.Load(), Waited: time.Duration(c.waits.nanoseconds.Load()),
		Stale: c.waits.stale.Load(),
	}
	for _, l := range c.server.Record.All() {
		unseen, unknown := l.Sizes()
		s.Unseen += unseen
		s.Unknown += unknown
	}
	return s
}

// waits is the live form of Stats.
type waits struct {
	count, stale atomic.Uint64
	nanoseconds  atomic.Int64
}

// over counts a wait that has ended.
func (w *waits) over(took time.Duration, err error) {
	w.count.Add(1)
	w.nanoseconds.Add(int64(took))
	if errors.Is(err, ErrStale) {
		w.stale.Add(1)
	}
}
