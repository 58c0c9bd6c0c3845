package pebble

import (
	"sync"

	engine "github.com/cockroachdb/pebble/v2"
)

// The engine slows writers down that are faster than its flushes and compactions: they wait, under its locks, until it has caught up.
// When the disk has failed it never does, and not even Close gets past them. So its own limits are out of reach, and the store keeps
// these, where a writer can be told of the failure instead.
const (
	// noLimit is what the engine's own limits are set to.
	noLimit = 1 << 20

	// mostUnflushed is how much may wait in memory to be flushed. Units: bytes.
	mostUnflushed = 8 << 20

	// mostSublevels is how many tables a read may have to look into before those of the first level are compacted.
	mostSublevels = 12

	// checkEvery is how much is written between two looks. Units: bytes.
	checkEvery = 1 << 20
)

// progress tells waiting writers that the engine has flushed or compacted.
type progress struct {
	mu sync.Mutex

	// made is closed, and replaced on demand, when there is some. Closed by the engine's goroutines; waited for by the writer
	// that leads; nil while nobody waits.
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

// makeRoom returns when the engine can take a batch. Only one writer at a time calls it: the leader. Errors: the disk's failure.
func (s *Store) makeRoom(batch *engine.Batch) error {
	if s.unchecked += batch.Len(); s.unchecked < checkEvery {
		return s.disk.failure()
	}
	s.unchecked = 0
	for {
		made := s.progress.next()
		m := s.db.Metrics()
		if err := s.disk.failure(); err != nil || m.MemTable.Size <= mostUnflushed && m.Levels[0].Sublevels <= mostSublevels {
			return err
		}
		select {
		case <-made:
		case <-s.disk.failed:
		}
	}
}
