package memory

import (
	"context"
	"strings"

	"github.com/flyball-dev/flyball/localapi/storage"
)

// watch is a position in the log.
type watch struct {
	store  *store
	prefix string
	after  int64 // the revision up to which the log has been read
	closed bool
}

// Watch implements [storage.Storage].
func (s *store) Watch(_ context.Context, prefix string, after int64) (storage.Watch, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	switch {
	case s.closed.Load():
		return nil, storage.ErrClosed
	case after > s.current.Load():
		return nil, storage.ErrFuture
	case after < s.compacted:
		return nil, storage.ErrCompacted
	}
	return &watch{store: s, prefix: prefix, after: after}, nil
}

// Poll implements [storage.Watch].
func (w *watch) Poll() ([]storage.Event, int64, error) {
	s := w.store
	if s.current.Load() == w.after && !w.closed && !s.closed.Load() {
		return nil, w.after, nil // nothing new: the common case takes no lock
	}
	s.mu.RLock()
	defer s.mu.RUnlock()
	return w.pollLocked()
}

func (w *watch) pollLocked() ([]storage.Event, int64, error) {
	s := w.store
	switch {
	case s.closed.Load() || w.closed:
		return nil, w.after, storage.ErrClosed
	case w.after < s.compacted:
		return nil, w.after, storage.ErrCompacted
	}
	var events []storage.Event
	for i := max(0, w.after-s.baseLocked()); i < int64(len(s.log)); i++ {
		if strings.HasPrefix(s.log[i].Key, w.prefix) {
			events = append(events, s.log[i])
		}
	}
	w.after = s.current.Load()
	return events, w.after, nil
}

// Next implements [storage.Watch].
func (w *watch) Next(ctx context.Context) ([]storage.Event, int64, error) {
	for {
		s := w.store
		s.mu.Lock()
		events, revision, err := w.pollLocked()
		if len(events) > 0 || err != nil {
			s.mu.Unlock()
			return events, revision, err
		}
		if s.appended == nil {
			s.appended = make(chan struct{})
		}
		appended := s.appended
		s.mu.Unlock()
		select {
		case <-appended:
		case <-ctx.Done():
			return nil, revision, ctx.Err()
		}
	}
}

// Close implements [storage.Watch].
func (w *watch) Close() { w.closed = true }

// wakeLocked wakes every watch that waits for the log to grow.
func (s *store) wakeLocked() {
	if s.appended != nil {
		close(s.appended)
		s.appended = nil
	}
}
