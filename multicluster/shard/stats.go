package shard

import "sync/atomic"

// counts holds the counters of Stats.
type counts struct {
	taken, asked, conflicts, errors, dead, lost atomic.Uint64
	released, yielded, stuck                    atomic.Uint64
}

// ended counts how a tenure ended. Lost tenures were counted when they were lost.
func (c *counts) ended(t *tenure, stuck error) {
	select {
	case <-t.lost:
		return
	default:
	}
	select {
	case <-t.ending:
		c.yielded.Add(1)
	default:
		c.released.Add(1)
	}
	if stuck != nil {
		c.stuck.Add(1)
	}
}

// Stats holds counters and the present state of an [Owner].
type Stats struct {
	// Member means that this replica is a member. Replicas is the number of members, as far as it knows.
	Member   bool
	Replicas int
	// Serving is the number of leases that this replica holds, Waiting the number that it waits for, and Owing the
	// number that it has still to release.
	Serving, Waiting, Owing int
	// Taken counts tenures. Released, HandedOver and Lost count how they ended. Stuck counts tenures after which work
	// continued, so that the lease has to expire.
	Taken, Released, HandedOver, Lost, Stuck uint64
	// Asked counts handovers that this replica requested, Conflicts writes for which another replica was faster, Errors
	// requests that failed, and Dead the sessions that this replica found expired.
	Asked, Conflicts, Errors, Dead uint64
}

// Stats returns a snapshot of the counters.
func (o *Owner) Stats() Stats {
	s := Stats{
		Replicas: o.replicas.count(),
		Taken:    o.counts.taken.Load(), Released: o.counts.released.Load(), HandedOver: o.counts.yielded.Load(),
		Lost: o.counts.lost.Load(), Stuck: o.counts.stuck.Load(), Asked: o.counts.asked.Load(),
		Conflicts: o.counts.conflicts.Load(), Errors: o.counts.errors.Load(), Dead: o.counts.dead.Load(),
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	s.Member = o.session != nil
	for _, c := range o.claims {
		switch {
		case c.tenure != nil:
			s.Serving++
		case c.pending != nil:
			s.Owing++
		case c.waited:
			s.Waiting++
		}
	}
	return s
}
