package cachecheck

import (
	"cmp"
	"iter"
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fieldselector "k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/internal/versions"
)

// Expected is one state of one object, as the answer to a write described it. Caches that follow the object should show
// it.
//
// A cache may pass that state without ever showing it. Its watch had a gap, and in the gap others changed or deleted
// the object again: the list after the gap shows only the result. No handler is called with the state, so a caller that
// knows it from the answer knows something that no event will ever correct.
type Expected struct {
	Namespace, Name string
	UID             types.UID
	// ResourceVersion is that of the state. Nothing is expected if it is not a number.
	ResourceVersion string
	// Selected reports whether selectors select the state. It is called only for caches that have some. Nil: all do.
	Selected func(labels.Selector, fieldselector.Selector) bool
	// Missed is called by each cache that passed the state without showing it, with no lock held. The goroutine that
	// applies changes calls it and waits for it. Expect calls it itself if the cache has already passed the state, or
	// if too much is expected of the cache.
	Missed func()
}

// MaxExpected bounds the states expected of one cache.
const MaxExpected = 10_000

// Expect makes every cache of the kind call e.Missed if it passes the state e without showing it.
func (c Caches) Expect(kind schema.GroupKind, e *Expected) {
	for _, cache := range c.All {
		s := &cache.Selection
		if s.Kind.GroupKind() == kind && s.Follows(e.Namespace) && s.selects(e) {
			cache.Expect(e)
		}
	}
}

// Unexpect undoes [Caches.Expect].
func (c Caches) Unexpect(kind schema.GroupKind, e *Expected) {
	for _, cache := range c.All {
		if cache.Selection.Kind.GroupKind() == kind {
			cache.expected.drop(e)
		}
	}
}

// expectations are the states that a cache has not reached.
type expectations struct {
	mu sync.Mutex
	// open has each state, with the watermark of its namespace at the time. Nil until something is expected.
	open map[*Expected]string
}

func (x *expectations) drop(e *Expected) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.open, e)
}

// Expected returns how many states are expected of the cache.
func (c *Cache) Expected() int {
	c.expected.mu.Lock()
	defer c.expected.mu.Unlock()
	return len(c.expected.open)
}

// Expect starts to wait for the state e, unless the cache has passed it.
func (c *Cache) Expect(e *Expected) {
	if !versions.Comparable(e.ResourceVersion) {
		return
	}
	if c.misses(e) {
		e.Missed()
	}
}

// misses reports whether e counts as missed at once.
func (c *Cache) misses(e *Expected) bool {
	x := &c.expected
	x.mu.Lock()
	defer x.mu.Unlock()
	mark := c.store.NamespaceResourceVersion(e.Namespace)
	switch {
	case e.passedAt(mark): // A batch that is being applied is not checked against e.
		held, found := c.store.Get(e.Namespace, e.Name)
		return !found || stateOf(held) != e.state()
	case len(x.open) >= MaxExpected:
		return true
	case x.open == nil:
		x.open = map[*Expected]string{}
	}
	x.open[e] = mark
	return false
}

func (e *Expected) state() state { return state{e.UID, e.ResourceVersion} }

// passedAt reports whether a cache with that watermark has reached the state.
func (e *Expected) passedAt(mark string) bool {
	return mark == e.ResourceVersion || versions.Earlier(e.ResourceVersion, mark)
}

// Passed is called by the informer after it applied a batch that showed these states. It calls Missed for the expected
// states that the cache passed and did not show. A watermark that went back has passed everything: those states belong
// to a history that no longer exists.
func (c *Cache) Passed(shown iter.Seq[metav1.Object]) {
	due := c.due()
	if len(due) == 0 {
		return
	}
	for obj := range shown {
		delete(due, stateOf(obj))
	}
	var missed []*Expected
	for _, twice := range due {
		missed = append(missed, twice...)
	}
	slices.SortFunc(missed, func(a, b *Expected) int { // Call Missed in a fixed order, unlike that of a map.
		one, other := a.ResourceVersion, b.ResourceVersion
		return cmp.Or(cmp.Compare(len(one), len(other)), cmp.Compare(one, other))
	})
	for _, e := range missed {
		e.Missed()
	}
}

// due removes and returns the states that the cache has passed.
func (c *Cache) due() map[state][]*Expected {
	x := &c.expected
	x.mu.Lock()
	defer x.mu.Unlock()
	var due map[state][]*Expected
	for e, before := range x.open {
		mark := c.store.NamespaceResourceVersion(e.Namespace)
		if !e.passedAt(mark) && !versions.Earlier(mark, before) {
			continue
		}
		delete(x.open, e)
		if due == nil {
			due = map[state][]*Expected{}
		}
		due[e.state()] = append(due[e.state()], e)
	}
	return due
}
