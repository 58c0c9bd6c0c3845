package informer

import (
	"context"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/informer/internal/objects"
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

// ContradictionError says that the server answers to writes that it has no such object, while the cache goes on
// holding it.
type ContradictionError struct {
	// Resource is as in [Health], Key is that of one object.
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
func (f *Factory) Contradicted(ctx context.Context, w Written) *ContradictionError {
	var found *ContradictionError
	for _, c := range f.holding(w) {
		err, act := c.informer.contradicted(w.Namespace, w.Name)
		if err == nil {
			continue
		}
		found = err
		if !act {
			continue
		}
		klog.FromContext(ctx).Info("The server contradicts the cache: relisting", "resource", err.Resource,
			"object", err.Key, "duration", time.Since(err.Since))
		f.server.Lost() // Whoever lists next asks who the server is.
		for _, src := range c.informer.sources {
			if src.namespace == "" || src.namespace == w.Namespace {
				src.status.Interrupt()
			}
		}
	}
	return found
}

// contradictions are the objects of one informer's cache that the server says it does not have.
type contradictions struct {
	mu sync.Mutex
	// said has when the server said so, by key and UID. Invariant: bounded by maxContradictions.
	said map[contradicted]said
	// listed is when the cache was last listed for one.
	listed time.Time
}

type contradicted struct {
	key string
	uid types.UID
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
func (s *SharedInformer[T]) contradicted(namespace, name string) (err *ContradictionError, act bool) {
	obj, found := s.Get(namespace, name)
	if !found {
		return nil, false
	}
	c := &s.contradictions
	c.mu.Lock()
	defer c.mu.Unlock()
	s.forgetLocked()
	what, now := contradicted{objects.KeyOf(namespace, name), obj.GetUID()}, time.Now()
	known, before := c.said[what]
	if !before {
		known = said{first: now, rebuilds: s.rebuilds()}
	}
	known.last = now
	if c.said == nil {
		c.said = map[contradicted]said{}
	}
	if before || len(c.said) < maxContradictions {
		c.said[what] = known
	}
	act = known.lasts() && (c.listed.IsZero() || now.Sub(c.listed) >= contradictAgain)
	if act {
		c.listed = now
	}
	return s.contradiction(what, known.first), act
}

// rebuilds counts those of all sources.
func (s *SharedInformer[T]) rebuilds() (n int64) {
	for _, src := range s.sources {
		n += src.status.Rebuilds.Load()
	}
	return n
}

func (s *SharedInformer[T]) contradiction(what contradicted, since time.Time) *ContradictionError {
	return &ContradictionError{
		Resource: s.o.Resource, Key: what.key, Since: since,
		holds: func() bool { return s.holds(what) },
	}
}

func (s *SharedInformer[T]) holds(what contradicted) bool {
	obj, found := s.indexer.Get(what.key)
	return found && obj.GetUID() == what.uid
}

// forgetLocked drops what is settled: the cache does not hold the object any more, or was rebuilt, or no more was said.
func (s *SharedInformer[T]) forgetLocked() {
	for what, known := range s.contradictions.said {
		if !s.holds(what) || s.rebuilds() != known.rebuilds || time.Since(known.last) > contradictFresh {
			delete(s.contradictions.said, what)
		}
	}
}

// doubt is Health.Doubt.
func (s *SharedInformer[T]) doubt() error {
	if s.HasSynced() && s.History("") < s.server.Current() {
		return ErrAnotherHistory
	}
	c := &s.contradictions
	c.mu.Lock()
	defer c.mu.Unlock()
	s.forgetLocked()
	var oldest *ContradictionError
	for what, known := range c.said {
		if known.lasts() && (oldest == nil || known.first.Before(oldest.Since)) {
			oldest = s.contradiction(what, known.first)
		}
	}
	if oldest == nil {
		return nil
	}
	return oldest
}
