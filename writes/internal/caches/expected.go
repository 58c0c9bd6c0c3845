package caches

import (
	"cmp"
	"iter"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	fieldselector "k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/versions"
)

// Expected is one state of one object, as the answer to a write described it. Caches that hold the object should show
// it.
//
// A cache may pass that state without ever showing it. Its watch had a gap, and in the gap others changed or deleted
// the object again: the list after the gap shows only the result. No handler is called with the state, so a caller that
// knows it from the answer knows something that no event will ever correct.
type Expected struct {
	Kind schema.GroupKind
	Key  types.NamespacedName
	UID  types.UID
	// ResourceVersion is that of the state. Nothing is expected if it is not a number.
	ResourceVersion string
	// Selected reports whether selectors select the state. It is called only for caches that have some. Nil: all do.
	Selected func(labels.Selector, fieldselector.Selector) bool
	// Missed is called once for each cache that passed the state without showing it. The goroutine that applies batches
	// calls it, without a lock, and waits for it. Expect itself calls it if the cache has already passed the state, or
	// if too much is expected of the cache.
	Missed func()
}

// maxExpected bounds the states expected of one cache.
const maxExpected = 10_000

// awaiting are the states expected of one cache. The Set's mu guards it.
type awaiting struct {
	// states maps each expected state to the watermark that its namespace had when the state was added.
	states map[*Expected]string
	// stop ends the observation of the cache.
	stop func()
}

// Expect calls e.Missed when a cache passes the state e without showing it.
func (s *Set) Expect(e *Expected) {
	if !versions.Comparable(e.ResourceVersion) {
		return
	}
	for _, c := range s.factory.Caches() {
		o := c.Selection()
		if o.Kind.GroupKind() == e.Kind && Takes(o.Namespaces, e.Key.Namespace) && selects(o, e) && s.expect(c, e) {
			e.Missed()
		}
	}
}

// expect adds e to the states expected of c. If e counts as missed at once, it returns true instead.
func (s *Set) expect(c informer.Cache, e *Expected) (missed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.awaiting[c]
	if a == nil {
		s.pruneLocked()
		a = &awaiting{states: map[*Expected]string{}}
		// The cache is observed before its watermark is read: a batch that comes between the two waits for mu.
		a.stop = c.Observe(func(shown iter.Seq[informer.Object]) { s.applied(c, shown) })
		s.awaiting[c] = a
	}
	mark := c.NamespaceResourceVersion(e.Key.Namespace)
	switch {
	case e.passedAt(mark): // The batch that passed it may have been applied before the cache was observed.
		held, found := c.Get(e.Key.Namespace, e.Key.Name)
		return !found || stateOf(held) != e.state()
	case len(a.states) >= maxExpected:
		return true
	}
	a.states[e] = mark
	return false
}

// Unexpect undoes [Set.Expect].
func (s *Set) Unexpect(e *Expected) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.awaiting {
		delete(a.states, e)
	}
}

// Expected returns how many states the caches are expected to show, counted for each cache.
func (s *Set) Expected() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.awaiting {
		n += len(a.states)
	}
	return n
}

// Prune forgets the caches that the factory has dropped, so that they can be freed. They will not apply another batch.
func (s *Set) Prune() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pruneLocked()
}

func (s *Set) pruneLocked() {
	used := s.factory.Caches()
	maps.DeleteFunc(s.awaiting, func(c informer.Cache, _ *awaiting) bool { return !slices.Contains(used, c) })
}

// applied is called after c has applied a batch, of which shown are the states. It calls Missed for the expected states
// that the cache passed and did not show.
func (s *Set) applied(c informer.Cache, shown iter.Seq[informer.Object]) {
	passed := s.passed(c)
	if len(passed) == 0 {
		return
	}
	for obj := range shown {
		delete(passed, stateOf(obj))
	}
	var missed []*Expected
	for _, same := range passed {
		missed = append(missed, same...)
	}
	slices.SortFunc(missed, func(a, b *Expected) int { // Call Missed in a fixed order, unlike that of a map.
		one, other := a.ResourceVersion, b.ResourceVersion
		return cmp.Or(cmp.Compare(len(one), len(other)), cmp.Compare(one, other))
	})
	for _, e := range missed {
		e.Missed()
	}
}

// passed removes and returns the expected states that the cache has passed. A watermark that went back counts as past
// all of them, because they belong to a history that no longer exists.
func (s *Set) passed(c informer.Cache) map[state][]*Expected {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := s.awaiting[c]
	if a == nil {
		return nil
	}
	if len(a.states) == 0 { // Not as soon as the last state is shown: a process often writes again soon.
		a.stop()
		delete(s.awaiting, c)
		return nil
	}
	var passed map[state][]*Expected
	for e, before := range a.states {
		mark := c.NamespaceResourceVersion(e.Key.Namespace)
		if !e.passedAt(mark) && !versions.Earlier(mark, before) {
			continue
		}
		delete(a.states, e)
		if passed == nil {
			passed = map[state][]*Expected{}
		}
		passed[e.state()] = append(passed[e.state()], e)
	}
	return passed
}

// passedAt reports whether a cache with that watermark has reached the state.
func (e *Expected) passedAt(mark string) bool {
	return mark == e.ResourceVersion || versions.Earlier(e.ResourceVersion, mark)
}

// selects reports whether a cache with that selection would hold the state. Only the server knows an object's shard, so
// nothing is expected of a cache with a shard selector.
func selects(o *informer.InformerOptions, e *Expected) bool {
	if takesAll(o) || o.ShardSelector == "" && e.Selected == nil {
		return true
	}
	byLabels, err := labels.Parse(o.LabelSelector)
	byFields, invalid := fieldselector.ParseSelector(o.FieldSelector)
	return o.ShardSelector == "" && err == nil && invalid == nil && e.Selected(byLabels, byFields)
}

// state identifies one state of one object.
type state struct {
	uid     types.UID
	version string
}

func (e *Expected) state() state { return state{e.UID, e.ResourceVersion} }

func stateOf(obj metav1.Object) state { return state{obj.GetUID(), obj.GetResourceVersion()} }
