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
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

// Expected is one state of one object, as the answer to a write described it. Caches that follow the object are
// expected to show it.
//
// A cache may come past that state without ever having shown it. Its watch had a gap, and in the gap others changed or
// deleted the object again: the list after the gap shows only what came of it. No handler then hears of the state, so
// whoever knows it from the answer knows something that no event will ever correct.
type Expected struct {
	Namespace, Name string
	UID             types.UID
	// ResourceVersion is that of the state. Nothing is expected where it is not a number.
	ResourceVersion string
	// Selected reports whether selectors select the state. It is called only for caches that have some. Nil: all do.
	Selected func(labels.Selector, fieldselector.Selector) bool
	// Missed is called by each cache that never showed the state, after the cache has come past it: with no lock held,
	// by the goroutine that applies changes, which waits for it. Expect calls it itself where the cache is past the
	// state already, or where too much is expected of the cache.
	Missed func()
}

// MaxExpected bounds what is expected of one cache.
const MaxExpected = 10_000

// Expect calls e.Missed for every cache of the kind that comes past the state e and never shows it.
func (c Caches) Expect(kind schema.GroupKind, e *Expected) {
	for _, cache := range c.All {
		s := &cache.Selection
		if s.Kind.GroupKind() == kind && s.follows(e.Namespace) && s.selects(e) {
			cache.Expect(e)
		}
	}
}

// Unexpect ends what [Caches.Expect] began.
func (c Caches) Unexpect(kind schema.GroupKind, e *Expected) {
	for _, cache := range c.All {
		if cache.Selection.Kind.GroupKind() == kind {
			cache.expected.drop(e)
		}
	}
}

// expectations are the states that a cache has not come to.
type expectations struct {
	mu sync.Mutex
	// open has, with each state, the watermark of its namespace at the time. Nil until something is expected.
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

// Expect waits for the state e, unless the cache has passed it.
func (c *Cache) Expect(e *Expected) {
	if _, err := resourceversion.CompareResourceVersion(e.ResourceVersion, e.ResourceVersion); err != nil {
		return
	}
	if c.misses(e) {
		e.Missed()
	}
}

// misses reports whether the cache will not be waited for to show e.
func (c *Cache) misses(e *Expected) bool {
	x := &c.expected
	x.mu.Lock()
	defer x.mu.Unlock()
	mark := c.store.NamespaceResourceVersion(e.Namespace)
	switch {
	case e.passedAt(mark): // A batch that is applied now is not looked at any more.
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

// passedAt reports whether a cache with that watermark is at the state or past it.
func (e *Expected) passedAt(mark string) bool {
	return mark == e.ResourceVersion || older(e.ResourceVersion, mark)
}

// Passed is told by the informer that a batch was applied, which showed these states. It calls Missed for the expected
// states that the cache came past and did not show. A watermark that went back has passed everything: those states are
// of a history that is no more.
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
	slices.SortFunc(missed, func(a, b *Expected) int { // The order in which they are told of is not that of a map.
		one, other := a.ResourceVersion, b.ResourceVersion
		return cmp.Or(cmp.Compare(len(one), len(other)), cmp.Compare(one, other))
	})
	for _, e := range missed {
		e.Missed()
	}
}

// due takes the states that the cache is past.
func (c *Cache) due() map[state][]*Expected {
	x := &c.expected
	x.mu.Lock()
	defer x.mu.Unlock()
	var due map[state][]*Expected
	for e, before := range x.open {
		mark := c.store.NamespaceResourceVersion(e.Namespace)
		if !e.passedAt(mark) && !older(mark, before) {
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
