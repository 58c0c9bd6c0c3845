package informer

import (
	"cmp"
	"slices"
	"sync"

	fieldselector "k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"

	"github.com/flyball-dev/flyball/informer/indexer"
	"github.com/flyball-dev/flyball/informer/internal/objects"
)

// Expected is one state of one object, as the answer to a write told it. Caches that follow the object are expected to
// show it.
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

// maxExpected bounds what is expected of one cache.
const maxExpected = 10_000

// Expect calls e.Missed if the cache of inf comes past the state e and never shows it. It is for informers that [For]
// or [ForOptions] returned; of others nothing is expected.
func Expect[T objects.Object](inf Informer[T], e *Expected) {
	if v, ok := inf.(*view[T]); ok {
		if shared, ok := v.shared.(*SharedInformer[objects.Object]); ok {
			shared.expect(e)
		}
	}
}

// Expect is the function Expect for every cache of the kind that there is.
func (f *Factory) Expect(kind schema.GroupKind, e *Expected) {
	for _, c := range f.of(kind) {
		if c.identity.follows(e.Namespace) && c.identity.selects(e) {
			c.informer.expect(e)
		}
	}
}

// Unexpect ends what [Factory.Expect] began.
func (f *Factory) Unexpect(kind schema.GroupKind, e *Expected) {
	for _, c := range f.of(kind) {
		c.informer.expected.drop(e)
	}
}

func (f *Factory) of(kind schema.GroupKind) []*cache {
	return slices.DeleteFunc(f.all(), func(c *cache) bool { return c.identity.kind.GroupKind() != kind })
}

// selects reports whether a cache with that identity would hold the state. Which shard an object is in only the server
// knows: of a shard nothing is expected.
func (id cacheIdentity) selects(e *Expected) bool {
	if id.takesAll() || id.shardSelector == "" && e.Selected == nil {
		return true
	}
	byLabels, err := labels.Parse(id.labelSelector)
	byFields, invalid := fieldselector.ParseSelector(id.fieldSelector)
	return id.shardSelector == "" && err == nil && invalid == nil && e.Selected(byLabels, byFields)
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

func (x *expectations) count() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.open)
}

// expect waits for the state e, unless the cache has passed it.
func (s *SharedInformer[T]) expect(e *Expected) {
	if _, err := resourceversion.CompareResourceVersion(e.ResourceVersion, e.ResourceVersion); err != nil {
		return
	}
	if s.misses(e) {
		e.Missed()
	}
}

// misses reports whether the cache will not be waited for to show e.
func (s *SharedInformer[T]) misses(e *Expected) bool {
	x := &s.expected
	x.mu.Lock()
	defer x.mu.Unlock()
	mark := s.NamespaceResourceVersion(e.Namespace)
	switch {
	case e.passedAt(mark): // A batch that is applied now is not looked at any more.
		held, found := s.Get(e.Namespace, e.Name)
		return !found || objects.Identify(held) != objects.Identity{UID: e.UID, Version: e.ResourceVersion}
	case len(x.open) >= maxExpected:
		return true
	case x.open == nil:
		x.open = map[*Expected]string{}
	}
	x.open[e] = mark
	return false
}

// passedAt reports whether a cache with that watermark is at the state or past it.
func (e *Expected) passedAt(mark string) bool {
	return mark == e.ResourceVersion || objects.Older(e.ResourceVersion, mark)
}

// passed tells of the states that the cache came past with these changes and did not show. A watermark that went back
// has passed everything: those states are of a history that is no more.
func (s *SharedInformer[T]) passed(changes []indexer.Change[T]) {
	due := s.due()
	if len(due) == 0 {
		return
	}
	for i := range changes {
		if t := changes[i].Type; t == indexer.ChangeAdd || t == indexer.ChangeUpdate {
			delete(due, objects.Identify(changes[i].New))
		}
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
func (s *SharedInformer[T]) due() map[objects.Identity][]*Expected {
	x := &s.expected
	x.mu.Lock()
	defer x.mu.Unlock()
	var due map[objects.Identity][]*Expected
	for e, before := range x.open {
		mark := s.NamespaceResourceVersion(e.Namespace)
		if !e.passedAt(mark) && !objects.Older(mark, before) {
			continue
		}
		delete(x.open, e)
		if due == nil {
			due = map[objects.Identity][]*Expected{}
		}
		state := objects.Identity{UID: e.UID, Version: e.ResourceVersion}
		due[state] = append(due[state], e)
	}
	return due
}
