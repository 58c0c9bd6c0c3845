package client

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/flyball-dev/flyball/internal/ownwrites"
)

// readCache answers q from the cache and the own writes.
//
// Errors: [ErrStale], [ErrNoIndex]; [informer.ErrRefused] when the cache is empty because the server refuses the
// list: the reader gets the permission that is missing, in words, and may try again later.
func (c *Cluster) readCache(ctx context.Context, cache *cache, q *query) ([]Object, error) {
	if !cache.store.hasSynced() {
		if err := cache.store.waitForSync(ctx); err != nil {
			return nil, fmt.Errorf("fill the cache of %s: %w", cache.writes.Name, err)
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
		if err != nil || ownwrites.Read(shown, ownwrites.WakerFrom(ctx)) {
			return objs, err
		}
	}
}

// consult returns the entries to be laid over what q reads. It waits for what cannot be laid over.
//
// Errors: [ErrStale].
func (c *Cluster) consult(ctx context.Context, cache *cache, q *query) ([]*ownwrites.Entry, error) {
	start := time.Now()
	deadline := start.Add(c.o.StaleAfter)
	for waited := false; ; waited = true {
		p := cache.writes.Look(cache, cache.namespaces, q.key)
		wait := c.obstacle(ctx, cache, q, p, deadline)
		var err error
		if wait != nil {
			err = wait()
		}
		if wait == nil || err != nil {
			if waited || err != nil {
				c.waits.over(time.Since(start), err)
			}
			return p.Entries, err
		}
	}
}

// obstacle returns the wait for what, on the page, cannot be laid over the cache; nil if everything can.
func (c *Cluster) obstacle(ctx context.Context, cache *cache, q *query, p ownwrites.Page,
	deadline time.Time,
) func() error {
	key := q.key // The functions keep no more of q, which can stay on the reader's stack.
	if p.Minimum != "" && !cache.reachedMinimum(key.Namespace, p.Minimum) {
		return func() error { return c.await(ctx, cache, key, p.Minimum, deadline) }
	}
	// What another cache has missed is most likely not as it was written any more, and who read it now would not be
	// told.
	i := slices.IndexFunc(p.Entries, func(e *ownwrites.Entry) bool { return !cache.exact(e) || e.Missed() })
	if i >= 0 {
		e := p.Entries[i]
		if e.AheadOf(cache) {
			return func() error {
				return &StaleError{Resource: cache.writes.Name.String(), Key: key, Wanted: e.Version}
			}
		}
		return func() error { return c.await(ctx, cache, key, e.Version, deadline) }
	}
	i = slices.IndexFunc(p.InDoubt, func(w *ownwrites.Write) bool { return cache.concerned(ctx, q, w) })
	if i < 0 {
		return nil
	}
	return func() error { return c.awaitWrite(ctx, cache, key, p.InDoubt[i], deadline) }
}

// reachedMinimum says whether the cache has reached the minimum version.
func (c *cache) reachedMinimum(namespace, minimum string) bool {
	c.marks.Lock()
	known := c.reached == minimum
	c.marks.Unlock()
	if known {
		return true
	}
	if !ownwrites.Reached(c.store.watermark(namespace), minimum) {
		return false
	}
	if namespace == "" || len(c.namespaces) == 0 {
		c.marks.Lock()
		defer c.marks.Unlock()
		c.reached = minimum
	}
	return true
}

// await waits until the cache has reached a version, or the deadline has.
func (c *Cluster) await(ctx context.Context, cache *cache, key ObjectKey, version string, deadline time.Time) error {
	stale := &StaleError{Resource: cache.writes.Name.String(), Key: key, Wanted: version}
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
func (c *Cluster) awaitWrite(ctx context.Context, cache *cache, key ObjectKey, w *ownwrites.Write,
	deadline time.Time,
) error {
	o := w.State()
	stale := &StaleError{Resource: cache.writes.Name.String(), Key: key, Cause: o.Lost}
	switch {
	case o.Until != "":
		if err := c.await(ctx, cache, w.Key(), o.Until, deadline); err != nil {
			stale.Wanted, stale.Seen = o.Until, cache.store.watermark(w.Key().Namespace)
			if !errors.Is(err, ErrStale) {
				return err
			}
			return stale
		}
		return nil
	case o.InDoubt && o.After.After(deadline):
		stale.RetryAfter = time.Until(o.After)
		return stale
	case o.InDoubt && !o.After.After(time.Now()):
		if err := cache.writes.Resolve(ctx, w); err != nil {
			stale.Cause = errors.Join(o.Lost, err)
			return stale
		}
		return nil
	}
	over := time.NewTimer(time.Until(deadline))
	defer over.Stop()
	done, due := w.Done(), make(<-chan time.Time)
	if o.InDoubt {
		timer := time.NewTimer(time.Until(o.After))
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
