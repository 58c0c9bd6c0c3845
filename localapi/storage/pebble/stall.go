package pebble

import (
	"sync"

	engine "github.com/cockroachdb/pebble/v2"
)

// If writers are faster than the engine's flushes and compactions, the engine makes them wait, under its locks, until
// it has caught up. After a failure of the disk it never catches up, and then not even Close gets past them. So the
// engine's own limits are set out of reach, and the store enforces the following ones instead, where a waiting writer
// can learn of the failure.
const (
	// noLimit is the value of the engine's own limits.
	noLimit = 1 << 20

	// mostUnflushed is how much data may wait in memory to be flushed. Units: bytes.
	mostUnflushed = 8 << 20

	// mostSublevels is how many tables of the first level a read may have to look into before writers wait for their
	// compaction.
	mostSublevels = 12

	// checkEvery is how much is written between two checks. Units: bytes.
	checkEvery = 1 << 20
)

// progress tells waiting writers that the engine has flushed or compacted.
type progress struct {
	mu sync.Mutex

	// made is closed, and replaced on demand, when the engine has made progress. The engine's goroutines close it; the
	// leading writer waits for it. It is nil while nobody waits.
	made chan struct{}
}

func (p *progress) next() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.made == nil {
		p.made = make(chan struct{})
	}
	return p.made
}

func (p *progress) tell() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.made != nil {
		close(p.made)
		p.made = nil
	}
}

// makeRoom returns when the engine can take a batch. Only the leader calls it, so there is one call at a time. Errors:
// the disk's failure.
func (s *Store) makeRoom(batch *engine.Batch) error {
	if s.unchecked += batch.Len(); s.unchecked < checkEvery {
		return s.disk.failure()
	}
	s.unchecked = 0
	for {
		made := s.progress.next()
		m := s.db.Metrics()
		if err := s.disk.failure(); err != nil || m.MemTable.Size <= mostUnflushed &&
			m.Levels[0].Sublevels <= mostSublevels {
			return err
		}
		select {
		case <-made:
		case <-s.disk.failed:
		}
	}
}
