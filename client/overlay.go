package client

import (
	"context"
	"errors"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/client/internal/cached"
	"github.com/flyball-dev/flyball/client/internal/kinds"
	"github.com/flyball-dev/flyball/client/internal/patches"
	"github.com/flyball-dev/flyball/internal/trace"
	"github.com/flyball-dev/flyball/internal/versions"
	"github.com/flyball-dev/flyball/writes"
)

// readCache answers q from the cache, with the own writes that the cache does not show yet.
//
// Errors: [ErrStale], [ErrNoIndex]; [informer.ErrForbidden] if the cache is empty because the server refuses the list.
// That error names the missing permission; the reader may try again later.
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
		entries, err := c.unreached(ctx, cache, q)
		if err != nil {
			return nil, err
		}
		objs, err := cache.Read(q)
		if err != nil || len(entries) == 0 {
			return objs, err
		}
		// Between the two calls, the cache may have reached an entry, or even a later state: then the entry must not be
		// shown. So look up the entries again. If they differ, an entry was reached, or a write is concurrent with this
		// read; then read again.
		again, err := c.unreached(ctx, cache, q)
		if err != nil {
			return nil, err
		}
		if !slices.Equal(entries, again) {
			continue
		}
		objs, shown, err := overlay(cache, q, objs, entries)
		if err != nil || writes.Shown(ctx, shown) {
			return objs, err
		}
	}
}

// unreached returns the entries to be shown in place of what the cache has. It waits for the writes that have no entry
// to show.
//
// Errors: [ErrStale].
func (c *Cluster) unreached(ctx context.Context, cache *cached.Cache, q *cached.Query) ([]*writes.Entry, error) {
	start := time.Now()
	deadline := start.Add(c.o.StaleAfter)
	for waited := false; ; waited = true {
		entries, more, err := waitForFirst(ctx, cache, q, deadline)
		if more && err == nil {
			continue
		}
		if waited || err != nil {
			took := time.Since(start)
			c.waits.ended(took, err)
			trace.RunFrom(ctx).Waited(cache.Writes.Name.String()+" "+q.Key.String(), took, err)
		}
		return entries, err
	}
}

// waitForFirst waits for the first write that concerns q and has no entry to show. more reports whether there was one:
// then there may be others.
func waitForFirst(ctx context.Context, cache *cached.Cache, q *cached.Query, deadline time.Time,
) (entries []*writes.Entry, more bool, err error) {
	entries, inDoubt, minimum := cache.Writes.Unreached(cache, q.Key)
	if minimum != "" {
		return entries, true, cache.Writes.WaitForVersion(ctx, cache, q.Key, minimum, deadline)
	}
	for _, e := range entries {
		// A missed state is most likely not the object's state any more. Its readers have been woken already, so a
		// reader that came now would not be.
		if !exact(cache, e) || e.Missed() {
			return entries, true, e.Wait(ctx, cache, q.Key, deadline)
		}
	}
	for _, w := range inDoubt {
		if concerns(ctx, w, cache, q) {
			return entries, true, w.Wait(ctx, cache, q.Key, deadline)
		}
	}
	return entries, false, nil
}

// overlay puts entries in place of what was read from the cache. It also returns those that are shown.
func overlay(cache *cached.Cache, q *cached.Query, objs []Object,
	entries []*writes.Entry,
) (_ []Object, shown []*writes.Entry, err error) {
	byKey := make(map[ObjectKey]*writes.Entry, len(entries))
	for _, e := range entries {
		byKey[e.Key] = e
	}
	objs = slices.DeleteFunc(objs, func(obj Object) bool {
		key := ObjectKeyFromObject(obj)
		e := byKey[key]
		switch {
		case e == nil:
			return false
		case e.Gone: // An earlier object of that name is gone, too.
			return obj.GetUID() == e.UID() || versions.Earlier(obj.GetResourceVersion(), e.Version)
		case versions.Earlier(e.Version, obj.GetResourceVersion()):
			delete(byKey, key) // The cache has reached the entry since it was looked up.
			return false
		}
		return true
	})
	for _, e := range byKey {
		if e.Gone {
			continue
		}
		obj, err := cache.View(e)
		if err != nil {
			return nil, nil, err
		}
		if cache.Matches(q, obj) {
			objs, shown = append(objs, obj), append(shown, e)
		}
	}
	return objs, shown, nil
}

// exact reports whether e can be shown to readers of the cache.
func exact(cache *cached.Cache, e *writes.Entry) bool {
	return e.Gone || (e.Body != nil && e.GVK == cache.Kind.GVK)
}

// concerns reports whether w could change what q reads.
func concerns(ctx context.Context, w *writes.Write, cache *cached.Cache, q *cached.Query) bool {
	if !w.Concerns(cache, q.Key.Namespace, OwnerFrom(ctx)) {
		return false
	}
	if w.All() {
		return true
	}
	key := w.Key()
	if !q.Lists() {
		return key == q.Key
	}
	before := newest(cache, key)
	if before != nil && cache.Matches(q, before) {
		return true
	}
	if w.Deletes() {
		return false
	}
	after, err := written(ctx, cache, w, before)
	return err != nil || cache.Matches(q, after)
}

var errUnwritten = errors.New("the result of the write is not known")

// written returns the object as it is after w, which is not a deletion. before is its state before w; nil if that is
// not known.
func written(ctx context.Context, cache *cached.Cache, w *writes.Write, before Object) (Object, error) {
	contentType, body := w.Sent()
	if body == nil || w.Patches() && before == nil {
		return nil, errUnwritten
	}
	if w.Patches() {
		data, media, err := kinds.Encode(before, cache.Kind.GVK, false)
		if err != nil {
			return nil, err
		}
		if body, err = patches.Applied(ctx, types.PatchType(contentType), before, data, body); err != nil {
			return nil, err
		}
		contentType = media
	}
	return cache.Decode(contentType, body)
}

// newest returns the object as this process last wrote it, or else as the cache has it; nil if neither is known.
func newest(cache *cached.Cache, key ObjectKey) Object {
	if key.Name == "" {
		return nil
	}
	if e := cache.Writes.Entry(key); e != nil && !e.Gone && exact(cache, e) {
		if obj, err := cache.View(e); err == nil {
			return obj
		}
	}
	if obj, found := cache.Get(key); found {
		return obj
	}
	return nil
}
