package pebble

import (
	"context"
	"errors"
	"strings"

	engine "github.com/cockroachdb/pebble/v2"

	"github.com/flyball-dev/flyball/localapi/storage"
)

// watch is a position in the log.
type watch struct {
	store  *Store
	prefix string
	after  int64 // the revision up to which the log has been read
	closed bool
}

// Watch implements [storage.Storage].
func (s *Store) Watch(_ context.Context, prefix string, after int64) (storage.Watch, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	switch {
	case s.closed.Load():
		return nil, storage.ErrClosed
	case after > s.published.Load():
		return nil, storage.ErrFuture
	case after < s.compacted:
		return nil, storage.ErrCompacted
	}
	return &watch{store: s, prefix: prefix, after: after}, nil
}

// Poll implements [storage.Watch].
func (w *watch) Poll() ([]storage.Event, int64, error) {
	events, _, err := w.poll(false)
	return events, w.after, err
}

// Next implements [storage.Watch].
func (w *watch) Next(ctx context.Context) ([]storage.Event, int64, error) {
	for {
		events, appended, err := w.poll(true)
		if len(events) > 0 || err != nil {
			return events, w.after, err
		}
		select {
		case <-appended:
		case <-w.store.disk.failed:
			if events, _, err := w.poll(false); len(events) > 0 || err != nil {
				return events, w.after, err
			}
			return nil, w.after, w.store.disk.failure()
		case <-ctx.Done():
			return nil, w.after, ctx.Err()
		}
	}
}

// Close implements [storage.Watch].
func (w *watch) Close() { w.closed = true }

// poll returns the events that are there. If there are none and wait is set, it returns a channel that is closed when
// there may be more.
func (w *watch) poll(wait bool) (events []storage.Event, appended <-chan struct{}, err error) {
	s := w.store
	if w.closed || s.closed.Load() {
		return nil, nil, storage.ErrClosed
	}
	if !wait && s.published.Load() == w.after {
		return nil, nil, nil // nothing new: the common case takes no lock
	}
	if err := s.enter(); err != nil {
		return nil, nil, err
	}
	defer s.leave()
	entries, snapshot, revision, err := s.since(w.prefix, w.after)
	if err != nil {
		return nil, nil, err
	}
	if events, err = s.events(entries, snapshot); err != nil {
		return nil, nil, s.disk.damaged(err)
	}
	w.after = revision
	if len(events) == 0 && wait {
		appended = s.grownAfter(revision)
	}
	return events, appended, nil
}

// since returns the log's entries with the prefix after a revision, and the revision up to which they are complete. If
// there is a snapshot, it has the versions of the entries without an event; the caller closes it.
func (s *Store) since(prefix string,
	after int64,
) (entries []entry, snapshot *engine.Snapshot, revision int64, err error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if after < s.compacted {
		return nil, nil, 0, storage.ErrCompacted
	}
	for i := max(0, after-s.baseLocked()); i < int64(len(s.log)); i++ {
		e := s.log[i]
		if !strings.HasPrefix(e.key, prefix) {
			continue
		}
		if e.event == nil && snapshot == nil {
			snapshot = s.db.NewSnapshot()
		}
		entries = append(entries, e)
	}
	return entries, snapshot, s.published.Load(), nil
}

// events returns the entries as events with their values.
func (s *Store) events(entries []entry, snapshot *engine.Snapshot) (events []storage.Event, err error) {
	if snapshot != nil {
		defer func() { err = errors.Join(err, snapshot.Close()) }()
	}
	for _, e := range entries {
		if e.event != nil {
			events = append(events, *e.event)
			continue
		}
		event := storage.Event{Record: storage.Record{Key: e.key, Revision: e.revision}, Deleted: e.deleted}
		if !e.deleted {
			if event.Value, err = read(snapshot, e.key, e.revision); err != nil {
				return nil, err
			}
		}
		if e.previous != storage.NoRevision {
			event.Previous = storage.Record{Key: e.key, Revision: e.previous}
			if event.Previous.Value, err = read(snapshot, e.key, e.previous); err != nil {
				return nil, err
			}
		}
		events = append(events, event)
	}
	return events, nil
}

// read returns the value of one version.
func read(snapshot *engine.Snapshot, key string, revision int64) ([]byte, error) {
	stored, closer, err := snapshot.Get(versionKey(key, revision))
	if err != nil {
		return nil, errors.Join(errDamaged, err)
	}
	value, _, err := parseVersion(stored)
	value = append(make([]byte, 0, len(value)), value...)
	return value, errors.Join(err, closer.Close())
}

// grownAfter returns a channel that is closed when the log has grown beyond a revision or the store is closed.
func (s *Store) grownAfter(revision int64) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.published.Load() > revision || s.closed.Load() {
		grown := make(chan struct{})
		close(grown)
		return grown
	}
	if s.appended == nil {
		s.appended = make(chan struct{})
	}
	return s.appended
}
