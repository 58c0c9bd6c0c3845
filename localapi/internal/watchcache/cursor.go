package watchcache

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

// batch bounds what Next returns at once, so that a consumer that is stuck pins little memory.
const batch = 256

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
	switch {
	case len(events) > batch:
		events = events[:batch:batch]
		w.after = events[batch-1].Revision
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
