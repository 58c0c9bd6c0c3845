package ordered

import (
	"iter"

	"k8s.io/utils/third_party/forked/golang/btree"
)

// degree is half of the most entries in a node of the tree. A write to a shared node copies that many.
const degree = 32

// Map is a sorted map. The zero value is empty and ready to use. It is not safe for concurrent use. A snapshot is a Map
// of its own, which may be used concurrently with the map it came from.
type Map[V any] struct {
	tree *btree.BTree[entry[V]] // nil before the first Set
}

type entry[V any] struct {
	key   string
	value V
}

// Len returns the number of keys.
func (m *Map[V]) Len() int {
	if m.tree == nil {
		return 0
	}
	return m.tree.Len()
}

// Get returns the value of key.
func (m *Map[V]) Get(key string) (V, bool) {
	if m.tree == nil {
		var none V
		return none, false
	}
	e, ok := m.tree.Get(entry[V]{key: key})
	return e.value, ok
}

// Set adds or replaces the value of key.
func (m *Map[V]) Set(key string, value V) {
	if m.tree == nil {
		m.tree = btree.New(degree, func(a, b entry[V]) bool { return a.key < b.key })
	}
	m.tree.ReplaceOrInsert(entry[V]{key, value})
}

// Delete removes key and reports whether it was there.
func (m *Map[V]) Delete(key string) bool {
	if m.tree == nil {
		return false
	}
	_, ok := m.tree.Delete(entry[V]{key: key})
	return ok
}

// From iterates in key order over the keys that are not less than start. The map must not change meanwhile.
func (m *Map[V]) From(start string) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		if m.tree == nil {
			return
		}
		m.tree.AscendGreaterOrEqual(entry[V]{key: start}, func(e entry[V]) bool { return yield(e.key, e.value) })
	}
}

// Snapshot returns the present state as a map of its own, in constant time.
func (m *Map[V]) Snapshot() *Map[V] {
	if m.tree == nil {
		return &Map[V]{}
	}
	return &Map[V]{m.tree.Clone()}
}
