package localapi

import (
	"context"
	"sync"
	"time"
)

// history decides when the oldest writes are forgotten. Each write holds the states of its object before and after it,
// so a bound in number does not bound the memory.
type history struct {
	limit, bytes int64         // see Options; 0: no bound
	age          time.Duration // the same

	mu    sync.Mutex
	total int64 // the bytes of all writes

	// marks say how many bytes were written up to a revision. There is one for about every eighth of the bound. The
	// first is the last one that was compacted.
	marks []mark

	// noted is the time of the last compaction by age, or the first request. The revision was then present.
	noted   time.Time
	present int64
}

type mark struct{ revision, total int64 }

// wrote notes a write, and returns the revision to compact to; 0 if nothing is to be forgotten yet.
func (h *history) wrote(revision int64, size int, compacted int64) int64 {
	if h.limit == 0 {
		return 0
	}
	due := int64(0)
	if revision-compacted > 2*h.limit {
		due = revision - h.limit
	}
	if h.bytes == 0 {
		return due
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.total += int64(size)
	if len(h.marks) == 0 || h.total-h.marks[len(h.marks)-1].total > h.bytes/8 {
		h.marks = append(h.marks, mark{revision, h.total})
	}
	for len(h.marks) > 1 && h.marks[1].revision <= compacted {
		h.marks = h.marks[1:]
	}
	if h.total-h.marks[0].total <= h.bytes+h.bytes/4 {
		return due
	}
	for _, m := range h.marks {
		if h.total-m.total <= h.bytes {
			return max(due, min(m.revision, revision-1)) // watches must see at least the last write
		}
	}
	return max(due, revision-1)
}

// aged returns the revision to compact to because of its age; 0 if nothing is to be forgotten yet. It is called for
// every request.
//
// Source: k8s.io/apiserver v0.37.2 pkg/storage/etcd3/compact.go, which compacts to what was present at its last run.
func (h *history) aged(now time.Time, current int64) int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	passed := now.Sub(h.noted)
	if passed < h.age {
		return 0
	}
	due := h.present
	if passed >= 2*h.age {
		due = current // there was no request since, so it was present an age ago
	}
	if h.noted.IsZero() {
		due = 0
	}
	h.noted, h.present = now, current
	return due
}

// compactIfOld keeps the history within its age.
func (s *Server) compactIfOld() {
	if s.history.age == 0 || s.history.limit == 0 {
		return
	}
	current, _ := s.env.Store.Revision()
	s.compactTo(s.history.aged(time.Now(), current))
}

// compactIfDue keeps the history within its size.
func (s *Server) compactIfDue(revision int64, size int) {
	_, compacted := s.env.Store.Revision()
	s.compactTo(s.history.wrote(revision, size, compacted))
}

// compactTo compacts to a revision, unless it is 0.
func (s *Server) compactTo(due int64) {
	if due == 0 || !s.compacting.CompareAndSwap(false, true) {
		return // or another goroutine compacts already
	}
	defer s.compacting.Store(false)
	// A failure only delays the compaction: it is tried again.
	_ = s.compact(context.Background(), due)
}
