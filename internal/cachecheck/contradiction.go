package cachecheck

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
)

const (
	// contradictAfter is how long the server must have contradicted a cache until the cache is listed anew. A watch
	// is rarely that late.
	contradictAfter = time.Second
	// contradictFresh is how long nothing may have been said against a cache until what was said before is forgotten.
	// It is longer than a reconcile that is contradicted is held back.
	contradictFresh = 2 * time.Minute
	// contradictAgain is how long a cache is not listed again for another contradiction.
	contradictAgain = 30 * time.Second
	// maxContradictions bounds what is remembered of one informer.
	maxContradictions = 100
)

// ContradictionError says that the server answers that it has no such object, while the cache goes on holding it.
type ContradictionError struct {
	// Resource is the plural name with the group, Key names one object.
	Resource, Key string
	// Since is when the server first said so.
	Since time.Time

	holds func() bool
}

// Stands reports whether the cache still holds the object.
func (e *ContradictionError) Stands() bool { return e.holds == nil || e.holds() }

func (e *ContradictionError) Error() string {
	return fmt.Sprintf("the server has had no %s %s for %v, but the cache holds it: relisting",
		e.Resource, e.Key, time.Since(e.Since).Round(time.Second))
}

// Contradicted is told that the server refused the request w because it has no such object, or another one under its
// name. It returns nil when no cache holds the object; else what is known: soon after a deletion nothing is wrong.
// When the answers go on for a second the cache is not believed: it is listed anew, and the server is asked whether
// it is another one.
//
// Concurrency: at any time. It does not wait.
func (c Caches) Contradicted(ctx context.Context, w Written) *ContradictionError {
	var found *ContradictionError
	for _, cache := range c.holding(w) {
		err, act := cache.contradicted(w.Namespace, w.Name)
		if err == nil {
			continue
		}
		found = err
		if act {
			klog.FromContext(ctx).Info("The server contradicts the cache: relisting", "resource", err.Resource,
				"object", err.Key, "duration", time.Since(err.Since))
			cache.store.Relist(w.Namespace)
		}
	}
	return found
}

// contradictions are the objects of one cache that the server says it does not have.
type contradictions struct {
	mu sync.Mutex
	// said has when the server said so. Invariant: bounded by maxContradictions.
	said map[contradicted]said
	// listed is when the cache was last listed for one.
	listed time.Time
}

type contradicted struct {
	namespace, name string
	uid             types.UID
}

// said is when the server first and last contradicted, since the cache was last rebuilt: it had been so many times
// before.
type said struct {
	first, last time.Time
	rebuilds    int64
}

// lasts reports whether this is more than a watch that is a little late.
func (s said) lasts() bool { return s.last.Sub(s.first) >= contradictAfter }

// contradicted notes that the server has no such object. It returns nil when the cache has none either; act says that
// the cache is to be listed anew.
func (c *Cache) contradicted(namespace, name string) (err *ContradictionError, act bool) {
	obj, found := c.store.Get(namespace, name)
	if !found {
		return nil, false
	}
	all := &c.contradictions
	all.mu.Lock()
	defer all.mu.Unlock()
	c.forgetLocked()
	what, now := contradicted{namespace, name, obj.GetUID()}, time.Now()
	known, before := all.said[what]
	if !before {
		known = said{first: now, rebuilds: c.store.Rebuilds()}
	}
	known.last = now
	if all.said == nil {
		all.said = map[contradicted]said{}
	}
	if before || len(all.said) < maxContradictions {
		all.said[what] = known
	}
	act = known.lasts() && (all.listed.IsZero() || now.Sub(all.listed) >= contradictAgain)
	if act {
		all.listed = now
	}
	return c.contradiction(what, known.first), act
}

func (c *Cache) contradiction(what contradicted, since time.Time) *ContradictionError {
	return &ContradictionError{
		Resource: c.Resource, Key: strings.TrimPrefix(what.namespace+"/"+what.name, "/"), Since: since,
		holds: func() bool { return c.holds(what) },
	}
}

func (c *Cache) holds(what contradicted) bool {
	obj, found := c.store.Get(what.namespace, what.name)
	return found && obj.GetUID() == what.uid
}

// forgetLocked drops what is settled: the cache does not hold the object any more, or was rebuilt, or no more was said.
func (c *Cache) forgetLocked() {
	for what, known := range c.contradictions.said {
		if !c.holds(what) || c.store.Rebuilds() != known.rebuilds || time.Since(known.last) > contradictFresh {
			delete(c.contradictions.said, what)
		}
	}
}

// Doubt returns the oldest [ContradictionError] that lasts; nil if there is none.
func (c *Cache) Doubt() error {
	c.contradictions.mu.Lock()
	defer c.contradictions.mu.Unlock()
	c.forgetLocked()
	var oldest *ContradictionError
	for what, known := range c.contradictions.said {
		if known.lasts() && (oldest == nil || known.first.Before(oldest.Since)) {
			oldest = c.contradiction(what, known.first)
		}
	}
	if oldest == nil {
		return nil
	}
	return oldest
}
