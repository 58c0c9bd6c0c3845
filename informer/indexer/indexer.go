package indexer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/flyball-dev/flyball/informer/internal/broadcast"
	"github.com/flyball-dev/flyball/informer/internal/identity"
	"github.com/flyball-dev/flyball/informer/objects"
	"github.com/flyball-dev/flyball/internal/versions"
)

// Indexer is the cache: objects by key, indexes over them, and the watermark up to which they are complete. One lock
// guards all three, so that readers always see them together.
//
// It has one writer, [Indexer.Apply], which makes a whole batch visible at once, and any number of readers.
//
// Concurrency: all methods may be called at any time. Readers wait only while prepared changes are committed, never for
// an index function.
type Indexer[T any] struct {
	// key returns the key of an object. nil means namespace and name.
	key func(T) (string, error)

	// write serialises the writers, Apply and AddIndex. It is taken before mu. A writer that holds it may read the
	// fields that mu guards without taking mu.
	write sync.Mutex
	// scratch is guarded by write.
	scratch scratch[T]

	// mu guards the fields below. Writers hold write as well.
	mu      sync.RWMutex
	entries map[string]*entry[T]
	all     *bucket[T]
	// indexes is in order of addition. indexes[0] is the built-in index by namespace, for List. Users cannot name it.
	indexes []*index[T]
	// labelled is true if one of the indexes is a [LabelIndex].
	labelled bool
	// unindexed has the objects for which an index function failed. Invariant: its keys are keys of entries.
	unindexed map[string]error
	// scopes has an element for each reflector that fills the cache.
	scopes []scopeState
	// marks counts the Replaces.
	marks uint32
	// snapshots has the open snapshots.
	snapshots []*snapshot[T]

	// moved is announced by Apply when the watermark may have moved.
	moved broadcast.Broadcast
}

// scopeState is how far the cache is filled by one reflector.
type scopeState struct {
	// watermark is the highest resource version applied. Invariant: only a Replace with AcceptEarlier lowers it.
	watermark string
	// listed is true once a Replace was applied. history is the number of the server's history in the last one.
	listed  bool
	history int64
}

// Options configure an [Indexer]. The zero value works.
type Options struct {
	// Scopes is the number of reflectors that fill the cache; 0 means 1.
	Scopes int
}

// New returns an empty cache. key returns the key of an object; nil means namespace and name, which costs no
// allocation.
func New[T any](key func(T) (string, error), o Options) *Indexer[T] {
	return &Indexer[T]{
		key:       key,
		entries:   map[string]*entry[T]{},
		all:       &bucket[T]{},
		indexes:   []*index[T]{{name: "namespace", buckets: map[string]*bucket[T]{}}},
		unindexed: map[string]error{},
		scopes:    make([]scopeState, max(1, o.Scopes)),
	}
}

var (
	// ErrNoIndex reports that the cache has no index of that name.
	ErrNoIndex = errors.New("no such index")
	// ErrIndexExists reports that the cache already has an index of that name.
	ErrIndexExists = errors.New("index already exists")
)

// AddIndex adds an index over the present and all later objects.
//
// Errors: [ErrIndexExists]; a missing name or function. It is not an error if f fails for an object: see [IndexFunc].
func (x *Indexer[T]) AddIndex(name string, f IndexFunc[T]) error {
	x.write.Lock()
	defer x.write.Unlock()
	switch {
	case x.indexNamed(name) != nil:
		return fmt.Errorf("add index %s: %w", name, ErrIndexExists)
	case name == "" || f == nil:
		return fmt.Errorf("add index %q: a name and an index function are required", name)
	}
	ix := &index[T]{name: name, label: labelOf(name), f: f, buckets: map[string]*bucket[T]{}}
	found := make([][]term[T], len(x.all.entries))
	failed := map[string]error{}
	for i, e := range x.all.entries {
		var err error
		if found[i], err = terms(nil, []*index[T]{ix}, e.obj); err != nil {
			failed[e.key] = err
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	for i, e := range x.all.entries {
		for _, t := range found[i] {
			ix.bucket(t.value).add(e)
		}
	}
	maps.Copy(x.unindexed, failed)
	x.indexes = append(x.indexes, ix)
	x.labelled = x.labelled || ix.label != ""
	return nil
}

// indexNamed returns a user's index, or nil. The caller holds a lock.
func (x *Indexer[T]) indexNamed(name string) *index[T] {
	for _, ix := range x.indexes[1:] {
		if ix.name == name {
			return ix
		}
	}
	return nil
}

// Get returns the object with that key.
func (x *Indexer[T]) Get(key string) (obj T, found bool) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if e := x.entries[key]; e != nil {
		return e.obj, true
	}
	return obj, false
}

// Known reports whether the cache holds the object, in any state.
func (x *Indexer[T]) Known(s objects.State) bool {
	_, found := x.Get(objects.KeyOf(string(s.Namespace), string(s.Name)))
	return found
}

// Held returns the object if it is in exactly the state s. It allocates nothing, because a list calls it for each of
// its objects.
func (x *Indexer[T]) Held(s objects.State) (obj T, found bool) {
	var room [256]byte
	key := room[:0]
	if len(s.Namespace) > 0 {
		key = append(append(key, s.Namespace...), '/')
	}
	key = append(key, s.Name...)
	x.mu.RLock()
	defer x.mu.RUnlock()
	e := x.entries[string(key)]
	if e == nil || len(s.ResourceVersion) == 0 {
		return obj, false
	}
	had := identity.Of(e.obj)
	if had.Version != string(s.ResourceVersion) || string(had.UID) != string(s.UID) {
		return obj, false
	}
	return e.obj, true
}

// List returns the objects of a namespace ("" means all) that match sel (nil matches all), in a new slice that belongs
// to the caller. A [LabelIndex] makes it faster. A loop over all objects is faster with [Indexer.All], which allocates
// nothing.
func (x *Indexer[T]) List(namespace string, sel labels.Selector) []T {
	if sel != nil && sel.Empty() {
		sel = nil
	}
	x.mu.RLock()
	objs := x.candidates(namespace, sel).read()
	x.mu.RUnlock()
	if sel == nil {
		return objs
	}
	return slices.DeleteFunc(objs, func(obj T) bool { return !selects(obj, namespace, sel) })
}

// ByIndex returns the objects that have value in the index of that name, in a new slice that belongs to the caller. A
// loop over them is faster with [Indexer.AllByIndex].
//
// Errors: [ErrNoIndex].
func (x *Indexer[T]) ByIndex(name, value string) ([]T, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	ix := x.indexNamed(name)
	if ix == nil {
		return nil, fmt.Errorf("index %s: %w", name, ErrNoIndex)
	}
	return ix.buckets[value].read(), nil
}

// Keys returns the keys of all objects, in no particular order.
func (x *Indexer[T]) Keys() []string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.all.keys()
}

// KeysByIndex returns the keys of the objects that [Indexer.ByIndex] returns, in no particular order.
//
// Errors: [ErrNoIndex].
func (x *Indexer[T]) KeysByIndex(name, value string) ([]string, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	ix := x.indexNamed(name)
	if ix == nil {
		return nil, fmt.Errorf("index %s: %w", name, ErrNoIndex)
	}
	return ix.buckets[value].keys(), nil
}

// IndexValues returns the values in the index of that name, in no particular order.
//
// Errors: [ErrNoIndex].
func (x *Indexer[T]) IndexValues(name string) ([]string, error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	ix := x.indexNamed(name)
	if ix == nil {
		return nil, fmt.Errorf("index %s: %w", name, ErrNoIndex)
	}
	return slices.AppendSeq(make([]string, 0, len(ix.buckets)), maps.Keys(ix.buckets)), nil
}

// AllByIndex iterates over the objects that [Indexer.ByIndex] returns, in the manner of [Indexer.All].
//
// Errors: [ErrNoIndex].
func (x *Indexer[T]) AllByIndex(name, value string) (iter.Seq[T], error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	ix := x.indexNamed(name) // Indexes are never removed.
	if ix == nil {
		return nil, fmt.Errorf("index %s: %w", name, ErrNoIndex)
	}
	return func(yield func(T) bool) {
		x.mu.Lock()
		x.iterate(ix.buckets[value], yield)
	}, nil
}

// All iterates over the objects as they are when the loop begins. It copies nothing and holds no lock during the loop.
// The first write during the loop copies the slice of pointers.
func (x *Indexer[T]) All() iter.Seq[T] {
	return func(yield func(T) bool) {
		x.mu.Lock()
		x.iterate(x.all, yield)
	}
}

// iterate calls yield for the objects now in b, which may be nil. The caller holds mu; iterate unlocks it.
func (x *Indexer[T]) iterate(b *bucket[T], yield func(T) bool) {
	if b == nil {
		x.mu.Unlock()
		return
	}
	objs, readers := b.share()
	x.mu.Unlock()
	defer readers.Add(-1)
	for _, obj := range objs {
		if !yield(obj) {
			return
		}
	}
}

// Len returns the number of objects.
func (x *Indexer[T]) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.all.objs)
}

// Unindexed returns the number of objects for which an index function failed, and one of the errors.
func (x *Indexer[T]) Unindexed() (n int, err error) {
	x.mu.RLock()
	defer x.mu.RUnlock()
	for _, err = range x.unindexed {
		break
	}
	return len(x.unindexed), err
}

// Synced reports whether every scope has been listed.
func (x *Indexer[T]) Synced() bool {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.syncedLocked()
}

func (x *Indexer[T]) syncedLocked() bool {
	return !slices.ContainsFunc(x.scopes, func(s scopeState) bool { return !s.listed })
}

// ResourceVersion returns the lowest watermark of all scopes; "" until every scope has been listed.
func (x *Indexer[T]) ResourceVersion() string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.resourceVersionLocked()
}

func (x *Indexer[T]) resourceVersionLocked() string {
	if !x.syncedLocked() {
		return ""
	}
	lowest := x.scopes[0].watermark
	for _, s := range x.scopes[1:] {
		if versions.Earlier(s.watermark, lowest) {
			lowest = s.watermark
		}
	}
	return lowest
}

// ScopeResourceVersion returns the watermark of one scope; "" until it has been listed.
func (x *Indexer[T]) ScopeResourceVersion(scope int) string {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.scopes[scope].watermark
}

// ScopeHistory returns the number of the server's history that one scope was last listed in.
func (x *Indexer[T]) ScopeHistory(scope int) int64 {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.scopes[scope].history
}

// WaitForResourceVersion waits until the watermark of scope is rv or later. If the server's versions cannot be compared
// it waits until the watermark is exactly rv.
//
// Errors: ctx's.
func (x *Indexer[T]) WaitForResourceVersion(ctx context.Context, scope int, rv string) error {
	for {
		moved := x.moved.Wait()
		if at := x.ScopeResourceVersion(scope); at == rv || versions.Earlier(rv, at) {
			return nil
		}
		select {
		case <-moved:
		case <-ctx.Done():
			return fmt.Errorf("wait for resource version %s: %w", rv, ctx.Err())
		}
	}
}
