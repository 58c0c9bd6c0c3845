package pebble

import (
	"context"
	"encoding/binary"

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
