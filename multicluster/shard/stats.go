package shard

import "sync/atomic"

// counts are what Stats counts.
type counts struct {
	taken, asked, conflicts, errors, dead, lost atomic.Uint64
	released, yielded, stuck                    atomic.Uint64
}

// ended counts how a tenure did; lost ones have been counted.
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

// Stats is what an [Owner] has done.
type Stats struct {
	// Member: this replica is one of those that share the fleet. Replicas is how many there are, as far as it knows.
	Member   bool
	Replicas int
	// Serving is how many leases this replica holds, Waiting how many it waits for, Owing how many it has not given
	// back yet.
	Serving, Waiting, Owing int
	// Taken counts tenures; Released, HandedOver and Lost how they ended, Stuck those after which work went on, so
	// that the lease has to run out.
	Taken, Released, HandedOver, Lost, Stuck uint64
	// Asked counts requests to hand over, Conflicts writes that another replica was faster with, Errors requests that
	// failed, Dead the sessions of replicas that were held to be over.
	Asked, Conflicts, Errors, Dead uint64
}

// Stats is a snapshot.
func (o *Owner) Stats() Stats {
	s := Stats{
		Replicas: len(o.replicas.list()),
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
		case c.owed != nil:
			s.Owing++
		case c.waited:
			s.Waiting++
		}
	}
	return s
}
