package pebble

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"

	engine "github.com/cockroachdb/pebble/v2"

	"github.com/flyball-dev/flyball/localapi/storage"
)

// compactionStep is how many writes are forgotten at once. Each step is a complete compaction, to a lower revision.
const compactionStep = 1000

// Compact implements [storage.Storage]. Its cost is proportional to the number of writes it forgets. A crash may undo
// its last part.
func (s *Store) Compact(ctx context.Context, revision int64) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	if err := s.disk.failure(); err != nil {
		return err
	}
	if revision > s.published.Load() {
		return storage.ErrFuture
	}
	s.compacting.Lock()
	defer s.compacting.Unlock()
	for {
		entries := s.forget(revision)
		if len(entries) == 0 {
			return nil
		}
		if err := s.compactOnDisk(entries); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
}

// forget removes the oldest entries, up to revision, from the log. After that, no reader starts to read the versions
// that they replaced. A reader that has started reads from a snapshot taken before these are deleted.
func (s *Store) forget(revision int64) []entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := min(revision-s.baseLocked(), compactionStep)
	if n <= 0 {
		return nil
	}
	entries := s.log[:n]
	for i := range entries {
		if entries[i].event != nil {
			s.whole--
			s.wholeBytes -= entries[i].size()
		}
	}
	s.log = s.log[n:]
	if len(s.log) < cap(s.log)/4 || revision == entries[n-1].revision {
		s.log = append(make([]entry, 0, len(s.log)+len(s.log)/2), s.log...) // a copy, so that the rest is garbage
	}
	s.compacted = entries[n-1].revision
	return entries
}

// compactOnDisk deletes the entries, and the versions that nobody can ask for any more: the predecessor of each write,
// and deletions.
func (s *Store) compactOnDisk(entries []entry) error {
	b := s.db.NewBatch()
	defer b.Close()
	for _, e := range entries {
		if e.previous != storage.NoRevision {
			if err := b.Delete(versionKey(e.key, e.previous), nil); err != nil {
				return err
			}
		}
		if e.deleted {
			if err := b.Delete(versionKey(e.key, e.revision), nil); err != nil {
				return err
			}
		}
	}
	last := entries[len(entries)-1].revision
	if err := b.DeleteRange(logKey(0), logKey(last+1), nil); err != nil {
		return err
	}
	if err := b.Set(compactedKey, binary.BigEndian.AppendUint64(nil, uint64(last)), nil); err != nil {
		return err
	}
	return s.apply(b, engine.NoSync)
}

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

// Backup copies the store, while it is in use, to the directory to, which must not exist. The copy is the store as of
// one revision, which is not older than the current one when Backup was called. [Open] opens it. If both are on one
// file system, the copy shares files that never change, and costs little.
func (s *Store) Backup(_ context.Context, to string) error {
	if err := s.enter(); err != nil {
		return err
	}
	defer s.leave()
	if err := s.disk.failure(); err != nil {
		return fmt.Errorf("back up to %s: %w", to, err) // files that the engine believes to be on disk may be in memory
	}
	if err := s.db.Checkpoint(to, engine.WithFlushedWAL()); err != nil {
		return fmt.Errorf("back up to %s: %w", to, err)
	}
	return nil
}
