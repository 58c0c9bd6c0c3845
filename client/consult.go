package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"
)

// readCache answers q from the cache and the books.
//
// Errors: [ErrStale], [ErrNoIndex]; [informer.ErrRefused] when the cache is empty because the server refuses the list: the
// reader gets the permission that is missing, in words, and may try again later.
func (c *Cluster) readCache(ctx context.Context, cache *cache, q *query) ([]Object, error) {
	if !cache.store.hasSynced() {
		if err := cache.store.waitForSync(ctx); err != nil {
			return nil, fmt.Errorf("fill the cache of %s: %w", cache.ledger.resource, err)
		}
	}
	if q.Lagging || c.o.WithoutReadYourWrites {
		return cache.read(q)
	}
	for {
		entries, err := c.consult(ctx, cache, q)
		if err != nil {
			return nil, err
		}
		objs, err := cache.read(q)
		if err != nil || len(entries) == 0 {
			return objs, err
		}
		// An entry that the cache has caught up with between the two must not be laid over it: the cache may know
		// more. Entries only go from one look to the next, or are new and then concern a write at the same time.
		again, err := c.consult(ctx, cache, q)
		if err != nil {
			return nil, err
		}
		if !slices.Equal(entries, again) {
			continue
		}
		objs, shown, err := cache.over(q, objs, entries)
		if err != nil || known(shown, wakerFrom(ctx)) {
			return objs, err
		}
	}
}

// consult returns the entries to be laid over what q reads. It waits for what cannot be laid over.
//
// Errors: [ErrStale].
func (c *Cluster) consult(ctx context.Context, cache *cache, q *query) ([]*entry, error) {
	start := time.Now()
	deadline := start.Add(c.o.StaleAfter)
	for waited := false; ; waited = true {
		p := cache.ledger.look(cache, q)
		wait := c.obstacle(ctx, cache, q, p, deadline)
		var err error
		if wait != nil {
			err = wait()
		}
		if wait == nil || err != nil {
			if waited || err != nil {
				c.waits.over(time.Since(start), err)
			}
			return p.entries, err
		}
	}
}

// obstacle returns the wait for what, on the page, cannot be laid over the cache; nil if everything can.
func (c *Cluster) obstacle(ctx context.Context, cache *cache, q *query, p page, deadline time.Time) func() error {
	key := q.key // The functions keep no more of q, which can stay on the reader's stack.
	if p.floor != "" && !cache.reachedFloor(key.Namespace, p.floor) {
		return func() error { return c.await(ctx, cache, key, p.floor, deadline) }
	}
	// What another cache has missed is most likely not as it was written any more, and who read it now would not be told.
	i := slices.IndexFunc(p.entries, func(e *entry) bool { return !e.exactFor(cache) || e.knowers.hasMissed() })
	if i >= 0 {
		e := p.entries[i]
		if cache.store.history(e.key.Namespace) < e.history {
			return func() error {
				return &StaleError{Resource: cache.ledger.resource.String(), Key: key, Wanted: e.version}
			}
		}
		return func() error { return c.await(ctx, cache, key, e.version, deadline) }
	}
	i = slices.IndexFunc(p.unsettled, func(w *write) bool { return w.concerns(ctx, cache, q, cache.ledger) })
	if i < 0 {
		return nil
	}
	return func() error { return c.awaitWrite(ctx, cache, key, p.unsettled[i], deadline) }
}

// reachedFloor says whether the cache has what is below the floor.
func (c *cache) reachedFloor(namespace, floor string) bool {
	c.marks.Lock()
	known := c.floored == floor
	c.marks.Unlock()
	if known {
		return true
	}
	if !reached(c.store.watermark(namespace), floor) {
		return false
	}
	if namespace == "" || len(c.namespaces) == 0 {
		c.marks.Lock()
		defer c.marks.Unlock()
		c.floored = floor
	}
	return true
}

// await waits until the cache has reached a version, or the deadline has.
func (c *Cluster) await(ctx context.Context, cache *cache, key ObjectKey, version string, deadline time.Time) error {
	stale := &StaleError{Resource: cache.ledger.resource.String(), Key: key, Wanted: version}
	wait, cancel := context.WithDeadlineCause(ctx, deadline, stale)
	defer cancel()
	if cache.store.waitForVersion(wait, key.Namespace, version) == nil {
		return nil
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	stale.Seen = cache.store.watermark(key.Namespace)
	return stale
}

// awaitWrite waits until the effect of w is in the cache, or the deadline is over.
func (c *Cluster) awaitWrite(ctx context.Context, cache *cache, key ObjectKey, w *write, deadline time.Time) error {
	o := w.state()
	stale := &StaleError{Resource: cache.ledger.resource.String(), Key: key, Cause: o.lost}
	switch {
	case o.until != "":
		if err := c.await(ctx, cache, w.key, o.until, deadline); err != nil {
			stale.Wanted, stale.Seen = o.until, cache.store.watermark(w.key.Namespace)
			if !errors.Is(err, ErrStale) {
				return err
			}
			return stale
		}
		return nil
	case o.vague && o.after.After(deadline):
		stale.RetryAfter = time.Until(o.after)
		return stale
	case o.vague && !o.after.After(time.Now()):
		if err := cache.ledger.resolve(ctx, c.live, w.place); err != nil {
			stale.Cause = errors.Join(o.lost, err)
			return stale
		}
		return nil
	}
	over := time.NewTimer(time.Until(deadline))
	defer over.Stop()
	done, due := w.done, make(<-chan time.Time)
	if o.vague {
		timer := time.NewTimer(time.Until(o.after))
		defer timer.Stop()
		done, due = nil, timer.C
	}
	select {
	case <-done:
		return nil
	case <-due:
		return nil
	case <-over.C:
		return stale
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
