package client

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/client/internal/cached"
	"github.com/flyball-dev/flyball/client/internal/kinds"
	"github.com/flyball-dev/flyball/client/internal/patches"
	"github.com/flyball-dev/flyball/internal/ownwrites"
	"github.com/flyball-dev/flyball/internal/versions"
)

// overlay lays entries over what was read from the cache. It also returns those that are shown.
func overlay(cache *cached.Cache, q *cached.Query, objs []Object,
	entries []*ownwrites.Entry,
) (_ []Object, shown []*ownwrites.Entry, err error) {
	byKey := make(map[ObjectKey]*ownwrites.Entry, len(entries))
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
			delete(byKey, key) // The cache has got on since the entries were looked up.
			return false
		}
		return true
	})
	for _, e := range byKey {
		if e.Gone {
			continue
		}
		obj, err := ownwrites.View(e, cache, cache.Hold)
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
func exact(cache *cached.Cache, e *ownwrites.Entry) bool {
	return e.Gone || (e.Body != nil && e.GVK == cache.Kind.GVK)
}

// concerned reports whether a read has to wait for w.
func concerned(ctx context.Context, cache *cached.Cache, q *cached.Query, w *ownwrites.Write) bool {
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
	if w.Deletes {
		return false
	}
	after, err := written(ctx, cache, w, before)
	return err != nil || cache.Matches(q, after)
}

var errUnwritten = errors.New("the result of the write is not known")

// written returns the object as it is after w, which is not a deletion. before is its state before w; nil if that is
// not known.
func written(ctx context.Context, cache *cached.Cache, w *ownwrites.Write, before Object) (Object, error) {
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

// newest returns the object as it was last written, or is in the cache; nil if neither is known.
func newest(cache *cached.Cache, key ObjectKey) Object {
	if key.Name == "" {
		return nil
	}
	if e := cache.Writes.EntryOf(key); e != nil && !e.Gone && exact(cache, e) {
		if obj, err := ownwrites.View(e, cache, cache.Hold); err == nil {
			return obj
		}
	}
	if obj, found := cache.Get(key); found {
		return obj
	}
	return nil
}
