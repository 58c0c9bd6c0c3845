package shard

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

// count increments one of the counters.
func (o *Owner) count(counter *uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	*counter++
}

// ended counts how a tenure ended. Lost tenures were counted when they were lost.
func (s *Stats) ended(t *tenure, stuck error) {
	select {
	case <-t.lost:
		return
	default:
	}
	select {
	case <-t.ending:
		s.HandedOver++
	default:
		s.Released++
	}
	if stuck != nil {
		s.Stuck++
	}
}

// Stats returns a snapshot of the counters.
func (o *Owner) Stats() Stats {
	o.mu.Lock()
	defer o.mu.Unlock()
	s := o.stats
	s.Member, s.Replicas = o.session != nil, o.replicas.count()
	for _, c := range o.claims {
		switch {
		case c.tenure != nil:
			s.Serving++
		case c.release != nil:
			s.Releasing++
		case c.waiting:
			s.Waiting++
		}
	}
	return s
}
