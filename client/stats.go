package client

import (
	"errors"
	"sync/atomic"
	"time"
)

// Stats counts the waits for own writes since the [Cluster] was made.
type Stats struct {
	// Waits counts the reads for which the answers of writes were not enough: they waited for the cache to show an own
	// write, or asked the server for the effect of one. Waited is the sum of these waits.
	Waits  uint64
	Waited time.Duration
	// Stale counts the reads among them that returned [ErrStale] or were answered by the server instead.
	Stale uint64
	// Unseen is the number of own writes that some cache does not show yet, Unknown the number of those whose effect is
	// not known.
	Unseen, Unknown int
	// Expected is the number of states that this process wrote and that caches have neither shown nor passed.
	Expected int
}

// Stats returns the counters as they are now. It takes a lock for each resource that was written.
func (c *Cluster) Stats() Stats {
	s := Stats{
		Waits: c.waits.count.Load(), Waited: time.Duration(c.waits.nanoseconds.Load()),
		Stale: c.waits.stale.Load(),
	}
	s.Unseen, s.Unknown, s.Expected = c.server.Record.Sizes()
	return s
}

// waits are the counters of Stats.
type waits struct {
	count, stale atomic.Uint64
	nanoseconds  atomic.Int64
}

// ended counts a wait that has ended.
func (w *waits) ended(took time.Duration, err error) {
	w.count.Add(1)
	w.nanoseconds.Add(int64(took))
	if errors.Is(err, ErrStale) {
		w.stale.Add(1)
	}
}
