package shard

import "sync/atomic"

// counts holds the counters of Stats.
type counts struct {
	taken, handoverRequests, conflicts, errors, expired, lost atomic.Uint64
	released, handedOver, stuck                               atomic.Uint64
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
		c.handedOver.Add(1)
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
	// Serving is the number of leases that this replica holds, Waiting the number that it waits for, and Releasing the
	// number whose tenure has ended but whose release is not written yet.
	Serving, Waiting, Releasing int
	// Taken counts tenures. Released, HandedOver and Lost count how they ended. Stuck counts tenures after which work
	// continued, so that the lease has to expire.
	Taken, Released, HandedOver, Lost, Stuck uint64
	// HandoverRequests counts handovers that this replica requested, Conflicts writes for which another replica was
	// faster, Errors requests that failed, and Expired the sessions that this replica found expired.
	HandoverRequests, Conflicts, Errors, Expired uint64
}

// Stats returns a snapshot of the counters.
func (o *Owner) Stats() Stats {
	s := Stats{
		Replicas: o.replicas.count(),
		Taken:    o.counts.taken.Load(), Released: o.counts.released.Load(), HandedOver: o.counts.handedOver.Load(),
		Lost: o.counts.lost.Load(), Stuck: o.counts.stuck.Load(), HandoverRequests: o.counts.handoverRequests.Load(),
		Conflicts: o.counts.conflicts.Load(), Errors: o.counts.errors.Load(), Expired: o.counts.expired.Load(),
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	s.Member = o.session != nil
	for _, c := range o.claims {
		switch {
		case c.tenure != nil:
			s.Serving++
		case c.pending != nil:
			s.Releasing++
		case c.waiting:
			s.Waiting++
		}
	}
	return s
}
