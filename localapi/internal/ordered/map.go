package ordered

import (
	"iter"
	"slices"
	"sort"
)

// chunkSize bounds a chunk. An insert moves at most that many entries, and the copy of a shared chunk costs as much.
const chunkSize = 256

// Map is a sorted map. The zero value is empty and ready to use. It is not safe for concurrent use. A snapshot is a Map
// of its own, which may be used concurrently with the map it came from.
type Map[V any] struct {
	chunks []*chunk[V] // Invariant: none is empty; keys ascend within and across chunks
	size   int

	// owner marks the chunks that only this map references. A snapshot gives both maps a new mark, so that both see
	// every existing chunk as shared.
	owner *mark

	// sharedList is true while a snapshot may read the same backing array of chunks.
	sharedList bool
}

type mark struct{ _ byte } // not empty: pointers to distinct marks must differ

type chunk[V any] struct {
	owner  *mark
	keys   []string
	values []V
}

// Len returns the number of keys.
func (m *Map[V]) Len() int { return m.size }

// Get returns the value of key.
func (m *Map[V]) Get(key string) (V, bool) {
	if c, i, found := m.find(key); found {
		return m.chunks[c].values[i], true
	}
	var none V
	return none, false
}

// Set adds or replaces the value of key.
func (m *Map[V]) Set(key string, value V) {
	if len(m.chunks) == 0 {
		m.chunks = []*chunk[V]{{owner: m.mark(), keys: []string{key}, values: []V{value}}}
		m.size, m.sharedList = 1, false
		return
	}
	n, i, found := m.find(key)
	c := m.writable(n)
	if found {
		c.values[i] = value
		return
	}
	c.keys = slices.Insert(c.keys, i, key)
	c.values = slices.Insert(c.values, i, value)
	m.size++
	if len(c.keys) > chunkSize {
		m.split(n, i)
	}
}

// Delete removes key and reports whether it was there.
func (m *Map[V]) Delete(key string) bool {
	n, i, found := m.find(key)
	if !found {
		return false
	}
	c := m.writable(n)
	c.keys = slices.Delete(c.keys, i, i+1)
	c.values = slices.Delete(c.values, i, i+1)
	m.size--
	if len(c.keys) == 0 {
		m.chunks = slices.Delete(m.chunks, n, n+1)
	}
	return true
}

// From iterates in key order over the keys that are not less than start. The map must not change meanwhile.
func (m *Map[V]) From(start string) iter.Seq2[string, V] {
	return func(yield func(string, V) bool) {
		if len(m.chunks) == 0 {
			return
		}
		n, i, _ := m.find(start)
		for ; n < len(m.chunks); n++ {
			c := m.chunks[n]
			for ; i < len(c.keys); i++ {
				if !yield(c.keys[i], c.values[i]) {
					return
				}
			}
			i = 0
		}
	}
}

// Snapshot returns the present state as a map of its own, in constant time.
func (m *Map[V]) Snapshot() *Map[V] {
	m.owner, m.sharedList = nil, true
	return &Map[V]{chunks: m.chunks, size: m.size, sharedList: true}
}

// find returns the chunk and the position in it where key is or belongs.
func (m *Map[V]) find(key string) (n, i int, found bool) {
	if len(m.chunks) == 0 {
		return 0, 0, false
	}
	n = sort.Search(len(m.chunks), func(i int) bool { return m.chunks[i].keys[0] > key })
	if n > 0 {
		n--
	}
	i, found = slices.BinarySearch(m.chunks[n].keys, key)
	return n, i, found
}

// split halves chunk n, or, when keys arrive in ascending order, starts a new chunk so that chunks stay full.
func (m *Map[V]) split(n, inserted int) {
	c := m.chunks[n]
	at := len(c.keys) / 2
	if inserted == len(c.keys)-1 {
		at = inserted
	}
	right := &chunk[V]{owner: m.mark(), keys: slices.Clone(c.keys[at:]), values: slices.Clone(c.values[at:])}
	clear(c.values[at:])
	c.keys, c.values = c.keys[:at], c.values[:at]
	m.chunks = slices.Insert(m.chunks, n+1, right)
}

func (m *Map[V]) mark() *mark {
	if m.owner == nil {
		m.owner = new(mark)
	}
	return m.owner
}

// writableList makes the list of chunks this map's own.
func (m *Map[V]) writableList() {
	if m.sharedList {
		m.chunks, m.sharedList = slices.Clone(m.chunks), false
	}
}

// writable makes chunk n this map's own.
func (m *Map[V]) writable(n int) *chunk[V] {
	m.writableList()
	c := m.chunks[n]
	if c.owner == nil || c.owner != m.owner {
		c = &chunk[V]{owner: m.mark(), keys: slices.Clone(c.keys), values: slices.Clone(c.values)}
		m.chunks[n] = c
	}
	return c
}
