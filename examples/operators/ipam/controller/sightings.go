package controller

import (
	"sync"
	"time"

	"github.com/flyball-dev/flyball/client"
)

// sightings remember since when Pods have been without addresses that are allocated to them. They live as long as the process: after a
// restart the time begins anew.
//
// Concurrency: all methods may be called from any goroutine.
type sightings struct {
	mu sync.Mutex
	// Invariant: of each pool those of the last pass only.
	pools map[client.ObjectKey]map[sighting]time.Time
}

// sighting identifies an allocation: another sandbox, or another Pod, is another one.
type sighting struct{ key, container, pod string }

// ripe returns those of a pool's unlisted allocations that have been so for the grace, and how long it takes until the next of the
// others are; 0 if there are no others. It forgets all that are not among unlisted.
func (s *sightings) ripe(pool client.ObjectKey, unlisted []allocation, grace time.Duration) (ripe []allocation, next time.Duration) {
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

// forget drops what is known of a pool.
func (s *sightings) forget(pool client.ObjectKey) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pools, pool)
}
