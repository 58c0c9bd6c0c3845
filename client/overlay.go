package client

import (
	"context"
	"fmt"
	"slices"

	"github.com/flyball-dev/flyball/internal/ownwrites"
)

// over lays entries over what was read from the cache. It also returns those that are shown.
func (c *cache) over(q *query, objs []Object,
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
		case e.Gone:
			return obj.GetUID() == e.UID()
		case ownwrites.Earlier(e.Version, obj.GetResourceVersion()):
			delete(byKey, key) // The cache has got on since the entries were looked up.
			return false
		}
		return true
	})
	for _, e := range byKey {
		if e.Gone {
			continue
		}
		obj, err := e.View(c, c.view)
		if err != nil {
			return nil, nil, err
		}
		if c.matches(q, obj) {
			objs, shown = append(objs, obj), append(shown, e)
		}
	}
	return objs, shown, nil
}

// exact reports whether e can be shown to readers of c.
func (c *cache) exact(e *ownwrites.Entry) bool {
	return e.Gone || (e.Body != nil && e.GVK == c.kind.gvk)
}

// view returns the object as c would hold it: in its representation, transformed, without what it strips.
func (c *cache) view(e *ownwrites.Entry) (Object, error) {
	obj, err := c.kind.decode(c.scheme, e.ContentType, e.Body)
	if err != nil {
		return nil, err
	}
	for _, transform := range c.transforms {
		if obj, err = transform(obj); err != nil {
			return nil, fmt.Errorf("transform %s: %w", e.Key, err)
		}
	}
	return obj, nil
}

// concerned reports whether a read of c has to wait for w.
func (c *cache) concerned(ctx context.Context, q *query, w *ownwrites.Write) bool {
	if !w.Concerns(c, q.key.Namespace, OwnerFrom(ctx)) {
		return false
	}
	if w.All() {
		return true
	}
	key := w.Key()
	if !q.lists() {
		return key == q.key
	}
	before, known := c.before(key)
	switch {
	case known && before != nil && c.matches(q, before):
		return true
	case w.Deletes:
		return false
	}
	contentType, body := w.Sent()
	if body == nil {
		return true
	}
	sent, err := c.kind.decode(c.scheme, contentType, body)
	return err != nil || c.matches(q, sent)
}

// before returns the object as it is in the cache, or was last written.
func (c *cache) before(key ObjectKey) (obj Object, known bool) {
	if key.Name == "" {
		return nil, false
	}
	if e := c.writes.EntryOf(key); e != nil && !e.Gone && c.exact(e) {
		if obj, err := e.View(c, c.view); err == nil {
			return obj, true
		}
	}
	return c.store.get(key)
}
