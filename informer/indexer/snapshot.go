package indexer

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/flyball-dev/flyball/informer/objects"
)

// Snapshot is the cache at one resource version. All reads of it see the same state, however long they take and
// whatever is written meanwhile. Close it: until then it also keeps the old state of every object that changes.
//
// Concurrency: as for [Indexer].
type Snapshot[T any] interface {
	Get(namespace, name string) (T, bool)
	List(namespace string, sel labels.Selector) []T
	// Errors: [ErrNoIndex], also for an index added after the snapshot was taken.
	ByIndex(name, value string) ([]T, error)
	// ResourceVersion returns the watermark of the snapshot.
	ResourceVersion() string
	// Close ends the snapshot. It is idempotent. Later reads see the current cache.
	Close()
}

// snapshot is the current cache plus a list of old states to put back. So taking a snapshot costs nothing, and keeping
// it costs as much as there are changes. Writers pay only while there is a snapshot.
type snapshot[T any] struct {
	indexer *Indexer[T]
	version string
	// indexes is the number of indexes when it was taken.
	indexes int
	// undo has the old state for each key that has changed since. Guarded by the indexer's mu.
	undo map[string]undone[T]
}

// undone is the old state of a key.
type undone[T any] struct {
	// there is true if there was an object.
	there bool
	obj   T
	terms []term[T]
}

// Snapshot returns the cache in its current state.
func (x *Indexer[T]) Snapshot() Snapshot[T] {
	x.mu.Lock()
	defer x.mu.Unlock()
	s := &snapshot[T]{
		indexer: x, version: x.resourceVersionLocked(), indexes: len(x.indexes), undo: map[string]undone[T]{},
	}
	x.snapshots = append(x.snapshots, s)
	return s
}

// preserve saves the state of key in all open snapshots before it changes. e is the entry, nil if there is none. The
// caller holds mu.
func (x *Indexer[T]) preserve(key string, e *entry[T]) {
	for _, s := range x.snapshots {
		if _, known := s.undo[key]; known {
			continue
		}
		var u undone[T]
		if e != nil {
			u.there, u.obj = true, e.obj
			for _, p := range e.places[1:] {
				u.terms = append(u.terms, term[T]{index: p.bucket.index, value: p.bucket.value})
			}
		}
		s.undo[key] = u
	}
}

func (s *snapshot[T]) Close() {
	s.indexer.mu.Lock()
	defer s.indexer.mu.Unlock()
	s.indexer.snapshots = slices.DeleteFunc(s.indexer.snapshots, func(other *snapshot[T]) bool { return other == s })
	clear(s.undo)
}

func (s *snapshot[T]) ResourceVersion() string { return s.version }

func (s *snapshot[T]) Get(namespace, name string) (obj T, found bool) {
	key := objects.KeyOf(namespace, name)
	s.indexer.mu.RLock()
	defer s.indexer.mu.RUnlock()
	if u, changed := s.undo[key]; changed {
		return u.obj, u.there
	}
	if e := s.indexer.entries[key]; e != nil {
		return e.obj, true
	}
	return obj, false
}

func (s *snapshot[T]) List(namespace string, sel labels.Selector) []T {
	s.indexer.mu.RLock()
	defer s.indexer.mu.RUnlock()
	var objs []T
	if namespace == "" {
		objs = s.read(s.indexer.all, func(undone[T]) bool { return true })
	} else {
		byNamespace := s.indexer.indexes[0]
		objs = s.readTerm(term[T]{index: byNamespace, value: namespace})
	}
	if sel == nil || sel.Empty() {
		return objs
	}
	return slices.DeleteFunc(objs, func(obj T) bool { return !selects(obj, namespace, sel) })
}

func (s *snapshot[T]) ByIndex(name, value string) ([]T, error) {
	s.indexer.mu.RLock()
	defer s.indexer.mu.RUnlock()
	ix := s.indexer.indexNamed(name)
	if ix == nil || slices.Index(s.indexer.indexes, ix) >= s.indexes {
		return nil, fmt.Errorf("index %s: %w", name, ErrNoIndex)
	}
	return s.readTerm(term[T]{index: ix, value: value}), nil
}

func (s *snapshot[T]) readTerm(t term[T]) []T {
	return s.read(t.index.buckets[t.value], func(u undone[T]) bool { return slices.Contains(u.terms, t) })
}

// read returns the objects that were in b: those that are in b now and have not changed, and the old states for which
// wasIn returns true. b may be nil.
func (s *snapshot[T]) read(b *bucket[T], wasIn func(undone[T]) bool) (objs []T) {
	if b != nil && len(s.undo) == 0 {
		return b.read()
	}
	if b != nil {
		for _, e := range b.entries {
			if _, changed := s.undo[e.key]; !changed {
				objs = append(objs, e.obj)
			}
		}
	}
	for _, u := range s.undo {
		if u.there && wasIn(u) {
			objs = append(objs, u.obj)
		}
	}
	return objs
}
