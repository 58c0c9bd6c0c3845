package controller

import (
	"sync"
	"time"

	"github.com/flyball-dev/flyball/client"
)

// sightings records since when Pods lack addresses that are allocated to them. The record is in memory: after a restart
// the time starts again.
//
// Concurrency: all methods may be called from any goroutine.
type sightings struct {
	mu sync.Mutex
	// Invariant: only the sightings of each pool's last pass.
	pools map[client.ObjectKey]map[sighting]time.Time
}

// sighting identifies an allocation. Another sandbox or another Pod makes it a different one.
type sighting struct{ key, container, pod string }

// ripe returns the pool's allocations that have been unlisted for at least grace, and the time until the next of the
// others is ripe, or 0 if there are no others. It forgets all that are not in unlisted.
func (s *sightings) ripe(pool client.ObjectKey, unlisted []allocation,
	grace time.Duration,
) (ripe []allocation, next time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, before := time.Now(), s.pools[pool]
	delete(s.pools, pool)
	if len(unlisted) == 0 {
		return nil, 0
	}
	seen := make(map[sighting]time.Time, len(unlisted))
	for _, a := range unlisted {
		id := sighting{a.key, a.ContainerID, a.PodRef}
		since, again := before[id]
		if !again {
			since = now
		}
		seen[id] = since
		if rest := grace - now.Sub(since); rest <= 0 {
			ripe = append(ripe, a)
		} else if next == 0 || rest < next {
			next = rest
		}
	}
	if s.pools == nil {
		s.pools = map[client.ObjectKey]map[sighting]time.Time{}
	}
	s.pools[pool] = seen
	return ripe, next
}

// forget drops the record of a pool.
func (s *sightings) forget(pool client.ObjectKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pools, pool)
}
