package watchcache

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/localapi/internal/ordered"
	"github.com/flyball-dev/flyball/localapi/storage"
)

// ErrExpired is returned for a revision whose events are no longer known, and ErrFuture for one that has not been
// reached.
var (
	ErrExpired = errors.New("revision expired")
	ErrFuture  = errors.New("revision in the future")
)

// Event is one change of one object.
type Event struct {
	// Object is the state after the change. For a deletion it is the last state, with the revision of the deletion.
	*Object
	Deleted bool

	// Previous is the state before the change, nil if there was none.
	Previous *Object
}

// Collection holds the objects of one resource.
type Collection struct {
	store  storage.Storage
	prefix string
	decode func(storage.Record) (runtime.Object, error)

	mu   sync.Mutex
	feed storage.Watch // nil until the first Sync

	// objects are the current states, by storage key.
	objects ordered.Map[*Object]

	// revision is the store's revision up to which objects and log are complete.
	revision int64

	// log holds the events whose revision is greater than oldest, in order. It is only ever appended to or replaced, so
	// that cursors can share parts of it.
	log    []*Event
	oldest int64
	// forgotten is the revision of the last event that the log no longer has, or may no longer have. It is at most
	// oldest. A cursor that has seen it misses nothing.
	forgotten int64

	// changed is closed, and replaced on demand, when the log grows. Sync closes it; watches wait for it.
	changed chan struct{}
}

// New returns the collection of the objects under prefix. decode turns a stored record into an object with its kind
// set; it may use the one in the record's tag.
func New(store storage.Storage, prefix string, decode func(storage.Record) (runtime.Object, error)) *Collection {
	return &Collection{store: store, prefix: prefix, decode: decode}
}

// Sync brings the collection up to the store's present revision.
func (c *Collection) Sync() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.syncLocked()
}

// SyncIfUsed is Sync for a collection that has been read before. The first reader brings any other collection up to
// date.
func (c *Collection) SyncIfUsed() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.feed == nil {
		return nil
	}
	return c.syncLocked()
}

// Get returns the current state of the object under key.
func (c *Collection) Get(key string) (*Object, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.syncLocked(); err != nil {
		return nil, false, err
	}
	o, ok := c.objects.Get(key)
	return o, ok, nil
}

// Snapshot returns the current state of the collection and its revision.
func (c *Collection) Snapshot() (*ordered.Map[*Object], int64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.syncLocked(); err != nil {
		return nil, 0, err
	}
	return c.objects.Snapshot(), c.revision, nil
}

// UnchangedSince reports whether the collection has not changed since revision, so that a snapshot can serve a list at
// revision.
func (c *Collection) UnchangedSince(revision int64) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if revision < c.oldest {
		return false
	}
	return len(c.log) == 0 || c.log[len(c.log)-1].Revision <= revision
}

// Trim forgets the events at or before revision. Cursors that still need them expire.
func (c *Collection) Trim(revision int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if revision <= c.oldest {
		return
	}
	n := c.indexLocked(revision)
	for _, e := range c.log[:n] {
		e.forget()
		c.forgotten = e.Revision
	}
	c.log = append(make([]*Event, 0, len(c.log)-n+n/2), c.log[n:]...)
	c.oldest = revision
}

// indexLocked returns the position in the log of the first event after revision.
func (c *Collection) indexLocked(revision int64) int {
	lo, hi := 0, len(c.log)
	for lo < hi {
		mid := int(uint(lo+hi) >> 1)
		if c.log[mid].Revision <= revision {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo
}

func (c *Collection) syncLocked() error {
	if c.feed == nil {
		if err := c.loadLocked(); err != nil {
			return err
		}
	}
	events, revision, err := c.feed.Poll()
	if errors.Is(err, storage.ErrCompacted) {
		// The store was compacted past this collection's position: start over from what is left of the history.
		c.feed.Close()
		c.feed = nil
		if err := c.loadLocked(); err != nil {
			return err
		}
		events, revision, err = c.feed.Poll()
	}
	if err != nil {
		return fmt.Errorf("follow %s: %w", c.prefix, err)
	}
	for _, e := range events {
		if err := c.applyLocked(e); err != nil {
			c.feed.Close()
			c.feed = nil // start over, so that no event is skipped silently
			return err
		}
	}
	c.revision = revision
	if len(events) > 0 && c.changed != nil {
		close(c.changed)
		c.changed = nil
	}
	return nil
}

// loadLocked starts from the oldest state that the store still has, so that the log reaches as far back as the store's.
func (c *Collection) loadLocked() error {
	// An embedded store answers or fails; a caller's deadline must not leave a half-loaded cache.
	ctx := context.Background()
	_, compacted := c.store.Revision()
	page := storage.Page{}
	if compacted > 0 {
		var err error
		if page, err = c.store.List(ctx, c.prefix, storage.ListOptions{Revision: compacted}); err != nil {
			return fmt.Errorf("load %s: %w", c.prefix, err)
		}
	}
	feed, err := c.store.Watch(ctx, c.prefix, compacted)
	if err != nil {
		return fmt.Errorf("load %s: %w", c.prefix, err)
	}
	c.objects, c.log, c.oldest, c.forgotten = ordered.Map[*Object]{}, nil, compacted, compacted
	for _, r := range page.Records {
		o, err := c.objectOf(r)
		if err != nil {
			return err
		}
		c.objects.Set(r.Key, o)
	}
	c.feed = feed
	return nil
}

func (c *Collection) applyLocked(e storage.Event) error {
	previous, _ := c.objects.Get(e.Key)
	if e.Deleted {
		if previous == nil {
			return nil
		}
		last := newObject(previous.Object, storage.Record{Key: e.Key, Value: previous.Value, Revision: e.Revision})
		c.objects.Delete(e.Key)
		c.log = append(c.log, &Event{Object: last, Deleted: true, Previous: previous})
		return nil
	}
	o, err := c.objectOf(e.Record)
	if err != nil {
		return err
	}
	c.objects.Set(e.Key, o)
	c.log = append(c.log, &Event{Object: o, Previous: previous})
	return nil
}

func (c *Collection) objectOf(r storage.Record) (*Object, error) {
	decoded, err := c.decode(r)
	if err != nil {
		return nil, fmt.Errorf("decode %s at revision %d: %w", r.Key, r.Revision, err)
	}
	return newObject(decoded, r), nil
}

// Cursor is a watch's position in a collection's log. One goroutine at a time may use it.
type Cursor struct {
	collection *Collection
	after      int64
}

// Watch returns a cursor to the events after revision. Errors: ErrExpired, ErrFuture.
func (c *Collection) Watch(revision int64) (*Cursor, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.syncLocked(); err != nil {
		return nil, err
	}
	switch {
	case revision < c.oldest:
		return nil, ErrExpired
	case revision > c.revision:
		return nil, ErrFuture
	}
	return &Cursor{collection: c, after: revision}, nil
}

// batch and batchBytes bound what Next returns at once, so that a consumer that is stuck pins little memory. One event
// is returned in any case. The bytes are those stored.
const (
	batch      = 256
	batchBytes = 4 << 20
)

// first returns how many of the events Next returns at once.
func first(events []*Event) int {
	size := 0
	for i, e := range events {
		if size += len(e.Value); i == batch || i > 0 && size > batchBytes {
			return i
		}
	}
	return len(events)
}

// Next returns some of the events that are there, without waiting, and the revision up to which they are complete. If
// there are none, changed is closed when there may be some. The events are read-only. Errors: ErrExpired.
func (w *Cursor) Next() (events []*Event, revision int64, changed <-chan struct{}, err error) {
	c := w.collection
	c.mu.Lock()
	defer c.mu.Unlock()
	if err := c.syncLocked(); err != nil {
		return nil, w.after, nil, err
	}
	if w.after < c.forgotten {
		return nil, w.after, nil, ErrExpired
	}
	events = c.log[c.indexLocked(w.after):]
	switch n := first(events); {
	case len(events) > n:
		events = events[:n:n]
		w.after = events[n-1].Revision
		return events, w.after, nil, nil
	case len(events) > 0:
		w.after = c.revision
		return events, w.after, nil, nil
	}
	w.after = c.revision
	if c.changed == nil {
		c.changed = make(chan struct{})
	}
	return nil, w.after, c.changed, nil
}
