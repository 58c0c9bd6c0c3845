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
	// contradictAfter is how long the server must contradict a cache before the cache is listed anew. A watch is rarely
	// later than that.
	contradictAfter = time.Second
	// contradictFresh is how long a contradiction is remembered after the server last repeated it. It is longer than a
	// reconcile that is contradicted is held back.
	contradictFresh = 2 * time.Minute
	// contradictAgain is the shortest time between two lists of a cache because of contradictions.
	contradictAgain = 30 * time.Second
	// maxContradictions bounds the contradictions remembered of one informer.
	maxContradictions = 100
)

// ContradictionError says that the server has no such object, while the cache still holds it.
type ContradictionError struct {
	// Resource is the plural name with the group. Key names one object.
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

// Contradicted is called when the server refused the request w because it has no such object, or another one under its
// name. It returns nil when no cache holds the object, and otherwise an error that describes the contradiction. Soon
// after a deletion a contradiction is normal. When it lasts for a second, Contradicted lists the cache anew and has it
// check whether another server has taken the place of this one.
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

// contradictions are the objects that one cache holds and the server says it does not have.
type contradictions struct {
	mu sync.Mutex
	// said has the times of each contradiction. Invariant: it has at most maxContradictions elements.
	said map[contradicted]said
	// listed is when the cache was last listed because of a contradiction.
	listed time.Time
}

type contradicted struct {
	namespace, name string
	uid             types.UID
}

// said is when the server first and last contradicted the cache, which had been rebuilt so many times before.
type said struct {
	first, last time.Time
	rebuilds    int64
}

// lasts reports whether the contradiction is too old to come from a watch that is a little late.
func (s said) lasts() bool { return s.last.Sub(s.first) >= contradictAfter }

// contradicted notes that the server has no such object. It returns nil when the cache has none either. act reports
// whether to list the cache anew.
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

// forgetLocked drops the contradictions that have ended: the cache no longer holds the object, was rebuilt, or was not
// contradicted again for long.
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
