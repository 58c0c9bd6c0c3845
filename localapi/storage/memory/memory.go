package memory

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/flyball-dev/flyball/localapi/internal/ordered"
	"github.com/flyball-dev/flyball/localapi/storage"
)

// store is an in-memory [storage.Storage].
type store struct {
	// current is the revision of the last write, and closed is true once Close was called. Both change under mu and may
	// be read without it.
	current atomic.Int64
	closed  atomic.Bool

	mu sync.RWMutex

	// keys holds every key that exists, or existed after the compacted revision.
	keys ordered.Map[*versions]

	// log holds the writes after the compacted revision, in order.
	// Invariant: log[i].Revision == compacted (or FirstRevision, if that is greater) + 1 + i.
	log       []storage.Event
	compacted int64

	// appended is closed, and replaced on demand, when the log grows or the store closes. The writer closes it; watches
	// wait for it. It is nil while nobody waits.
	appended chan struct{}
}

// versions are the states of one key, oldest first. Invariant: never empty. At most the first is at or below the
// compacted revision, and that one is not a deletion.
type versions []version

type version struct {
	storage.Record
	deleted bool
}

// New returns an empty store in memory.
func New() storage.Storage {
	s := &store{}
	s.current.Store(storage.FirstRevision)
	return s
}

// Get implements [storage.Storage].
func (s *store) Get(_ context.Context, key string) (storage.Record, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed.Load() {
		return storage.Record{}, storage.ErrClosed
	}
	v, ok := s.latestLocked(key)
	if !ok {
		return storage.Record{}, storage.ErrNotFound
	}
	return v, nil
}

// List implements [storage.Storage].
func (s *store) List(_ context.Context, prefix string, o storage.ListOptions) (storage.Page, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed.Load() {
		return storage.Page{}, storage.ErrClosed
	}
	revision := o.Revision
	switch current := s.current.Load(); {
	case revision == 0:
		revision = current
	case revision > current:
		return storage.Page{}, storage.ErrFuture
	case revision < s.compacted:
		return storage.Page{}, storage.ErrCompacted
	}
	page := storage.Page{Revision: revision}
	for key, vs := range s.keys.From(max(prefix, o.Start)) {
		if !strings.HasPrefix(key, prefix) {
			break
		}
		r, ok := vs.at(revision)
		switch {
		case !ok:
		case o.Limit > 0 && len(page.Records) == o.Limit:
			page.Remaining++
		default:
			page.Records = append(page.Records, r)
		}
	}
	return page, nil
}

// Put implements [storage.Storage].
func (s *store) Put(_ context.Context, w storage.Write) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.Load() {
		return 0, storage.ErrClosed
	}
	previous, _ := s.latestLocked(w.Key)
	if previous.Revision != w.Expected {
		return 0, storage.ErrConflict
	}
	r := storage.Record{Key: w.Key, Value: w.Value, Revision: s.current.Load() + 1, Tag: w.Tag}
	s.appendLocked(storage.Event{Record: r, Previous: previous})
	return r.Revision, nil
}

// Delete implements [storage.Storage].
func (s *store) Delete(_ context.Context, key string, expected int64) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.Load() {
		return 0, storage.ErrClosed
	}
	previous, ok := s.latestLocked(key)
	switch {
	case !ok:
		return 0, storage.ErrNotFound
	case previous.Revision != expected:
		return 0, storage.ErrConflict
	}
	r := storage.Record{Key: key, Revision: s.current.Load() + 1}
	s.appendLocked(storage.Event{Record: r, Deleted: true, Previous: previous})
	return r.Revision, nil
}

// Revision implements [storage.Storage].
func (s *store) Revision() (current, compacted int64) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	return s.current.Load(), s.compacted
}

// Compact implements [storage.Storage]. Its cost is proportional to the number of writes it forgets.
func (s *store) Compact(_ context.Context, revision int64) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed.Load() {
		return storage.ErrClosed
	}
	if revision > s.current.Load() {
		return storage.ErrFuture
	}
	if revision <= s.compacted {
		return nil
	}
	n := max(0, int(revision-s.baseLocked()))
	for i := range s.log[:n] {
		s.forgetLocked(s.log[i].Key, revision)
	}
	// A copy, so that the compacted events become garbage even while later ones are referenced.
	s.log = append(make([]storage.Event, 0, len(s.log)-n+n/2), s.log[n:]...)
	s.compacted = revision
	return nil
}

// Close implements [storage.Storage].
func (s *store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed.Store(true)
	s.wakeLocked()
	return nil
}

// baseLocked returns the revision just before the first event of the log.
func (s *store) baseLocked() int64 { return max(s.compacted, storage.FirstRevision) }

// latestLocked returns the current state of key, or a zero record.
func (s *store) latestLocked(key string) (storage.Record, bool) {
	vs, ok := s.keys.Get(key)
	if !ok {
		return storage.Record{}, false
	}
	last := (*vs)[len(*vs)-1]
	if last.deleted {
		return storage.Record{}, false
	}
	return last.Record, true
}

func (s *store) appendLocked(e storage.Event) {
	s.log = append(s.log, e)
	vs, ok := s.keys.Get(e.Key)
	if !ok {
		vs = new(versions)
		s.keys.Set(e.Key, vs)
	}
	*vs = append(*vs, version{Record: e.Record, deleted: e.Deleted})
	s.current.Store(e.Revision)
	s.wakeLocked()
}

// forgetLocked drops the versions of key that no list at or after revision can see.
func (s *store) forgetLocked(key string, revision int64) {
	vs, ok := s.keys.Get(key)
	if !ok {
		return
	}
	keep := 0
	for keep+1 < len(*vs) && (*vs)[keep+1].Revision <= revision {
		keep++
	}
	if (*vs)[keep].deleted && (*vs)[keep].Revision <= revision {
		keep++
	}
	if keep == len(*vs) {
		s.keys.Delete(key)
		return
	}
	if keep > 0 {
		*vs = append(versions(nil), (*vs)[keep:]...)
	}
}

func (vs versions) at(revision int64) (storage.Record, bool) {
	for i := len(vs) - 1; i >= 0; i-- {
		if vs[i].Revision <= revision {
			return vs[i].Record, !vs[i].deleted
		}
	}
	return storage.Record{}, false
}
