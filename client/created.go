package client

import (
	"context"
	"slices"
)

// Created is an object that a write made which was answered, and that some cache does not hold yet. When somebody else deletes
// it before the watch has brought it (in a gap of the watch, so that the next list lacks it), then no event ever tells of
// it: neither of the creation nor of the deletion. This one knows.
type Created struct {
	ledger *ledger
	entry  *entry
}

// Key names the object.
func (c Created) Key() ObjectKey { return c.entry.key }

// Resource names what it is one of.
func (c Created) Resource() string { return c.ledger.resource.String() }

// Vanished waits until the caches that should hold the object have come as far as its creation, and says whether it is
// missing from one then.
//
// Errors: ctx's.
func (c Created) Vanished(ctx context.Context) (bool, error) {
	for _, cache := range c.missingFrom() {
		if err := cache.store.waitForVersion(ctx, c.entry.key.Namespace, c.entry.version); err != nil {
			return false, err
		}
		if !c.heldBy(cache) {
			return true, nil
		}
	}
	return false, nil
}

func (c Created) heldBy(cache *cache) bool {
	obj, found := cache.store.get(c.entry.key)
	return found && obj.GetUID() == c.entry.uid
}

// missingFrom returns the caches that lack the object, though they select it.
func (c Created) missingFrom() []*cache {
	c.ledger.mu.Lock()
	caches := slices.Clone(c.ledger.caches)
	c.ledger.mu.Unlock()
	return slices.DeleteFunc(caches, func(cache *cache) bool {
		if !cache.follows(c.entry.key.Namespace) || c.heldBy(cache) || !c.entry.exactFor(cache) || !comparableVersion(c.entry.version) {
			return true
		}
		obj, err := c.entry.view(cache)
		return err != nil || !cache.holds(obj)
	})
}

type createdKey struct{}

// WithCreated makes f hear of what is created with the returned context, before the call that creates it returns. Package
// reconcile does this for every reconcile, and runs the key again whose object has vanished.
func WithCreated(ctx context.Context, f func(Created)) context.Context {
	return context.WithValue(ctx, createdKey{}, f)
}

// tell tells who wants to hear of what w created.
func (w *write) tell(ctx context.Context, l *ledger, e *entry) {
	if f, _ := ctx.Value(createdKey{}).(func(Created)); f != nil && w.creates && e != nil && !e.gone {
		if c := (Created{l, e}); len(c.missingFrom()) > 0 {
			f(c)
		}
	}
}
