package client

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/flyball-dev/flyball/client/internal/cached"
	"github.com/flyball-dev/flyball/internal/ownwrites"
	"github.com/flyball-dev/flyball/internal/trace"
	"github.com/flyball-dev/flyball/internal/versions"
)

// readCache answers q from the cache and the own writes.
//
// Errors: [ErrStale], [ErrNoIndex]; [informer.ErrForbidden] when the cache is empty because the server refuses the
// list: the reader gets the permission that is missing, in words, and may try again later.
func (c *Cluster) readCache(ctx context.Context, cache *cached.Cache, q *cached.Query,
	o ReadOptions,
) ([]Object, error) {
	if err := cache.WaitForSync(ctx); err != nil {
		return nil, err
	}
	if o.Lagging {
		return cache.Read(q)
	}
	for {
		entries, err := c.consult(ctx, cache, q)
		if err != nil {
			return nil, err
		}
		objs, err := cache.Read(q)
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
		objs, shown, err := overlay(cache, q, objs, entries)
		if err != nil || ownwrites.Read(shown, ownwrites.WakerFrom(ctx)) {
			return objs, err
		}
	}
}

// consult returns the entries to be laid over what q reads. It waits for what cannot be laid over.
//
// Errors: [ErrStale].
func (c *Cluster) consult(ctx context.Context, cache *cached.Cache, q *cached.Query) ([]*ownwrites.Entry, error) {
	start := time.Now()
	deadline := start.Add(c.o.StaleAfter)
	for waited := false; ; waited = true {
		page := cache.Writes.Look(cache, cache.Namespaces, q.Key)
		clear, err := await(ctx, cache, q, page, deadline)
		if !clear && err == nil {
			continue
		}
		if waited || err != nil {
			took := time.Since(start)
			c.waits.over(took, err)
			trace.RunFrom(ctx).Waited(cache.Writes.Name.String()+" "+q.Key.String(), took, err)
		}
		return page.Entries, err
	}
}

// await waits for the first thing on the page that cannot be laid over the cache. It reports whether there was none.
func await(ctx context.Context, cache *cached.Cache, q *cached.Query, page ownwrites.Page,
	deadline time.Time,
) (clear bool, err error) {
	if page.Minimum != "" && !versions.Reached(cache.Watermark(q.Key.Namespace), page.Minimum) {
		return false, awaitVersion(ctx, cache, q.Key, page.Minimum, deadline)
	}
	for _, e := range page.Entries {
		// What another cache has missed is most likely not as it was written any more, and who read it now would not
		// be told.
		if exact(cache, e) && !e.Missed() {
			continue
		}
		if e.AheadOf(cache) {
			return false, &StaleError{Resource: cache.Writes.Name.String(), Key: q.Key, Wanted: e.Version}
		}
		return false, awaitVersion(ctx, cache, q.Key, e.Version, deadline)
	}
	for _, w := range page.InDoubt {
		if concerned(ctx, cache, q, w) {
			return false, awaitWrite(ctx, cache, q.Key, w, deadline)
		}
	}
	return true, nil
}

// awaitVersion waits until the cache has reached a version, or the deadline has.
func awaitVersion(ctx context.Context, cache *cached.Cache, key ObjectKey, version string, deadline time.Time) error {
	wait, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	switch {
	case cache.WaitForVersion(wait, key.Namespace, version) == nil:
		return nil
	case ctx.Err() != nil:
		return context.Cause(ctx)
	}
	return &StaleError{
		Resource: cache.Writes.Name.String(), Key: key, Wanted: version, Seen: cache.Watermark(key.Namespace),
	}
}

// awaitWrite waits until the effect of w is in the cache, or the deadline is over.
func awaitWrite(ctx context.Context, cache *cached.Cache, key ObjectKey, w *ownwrites.Write,
	deadline time.Time,
) error {
	o := w.State()
	stale := &StaleError{Resource: cache.Writes.Name.String(), Key: key, Cause: o.Lost}
	switch {
	case o.Until != "":
		err := awaitVersion(ctx, cache, w.Key(), o.Until, deadline)
		if behind := (*StaleError)(nil); errors.As(err, &behind) {
			behind.Key, behind.Cause = key, o.Lost
		}
		return err
	case o.InDoubt && o.After.After(deadline):
		stale.RetryAfter = time.Until(o.After)
		return stale
	case o.InDoubt && !o.After.After(time.Now()):
		if err := cache.Writes.Resolve(ctx, w); err != nil {
			stale.Cause, stale.RetryAfter = errors.Join(o.Lost, err), ownwrites.AskAgainAfter
			return stale
		}
		return nil
	}
	wait, cancel := context.WithDeadline(ctx, deadline)
	defer cancel()
	done, due := w.Done(), make(<-chan time.Time)
	if o.InDoubt {
		done, due = nil, time.After(time.Until(o.After))
	}
	select {
	case <-done:
		return nil
	case <-due:
		return nil
	case <-wait.Done():
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return stale
}
