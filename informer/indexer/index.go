package indexer

import (
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer/internal/identity"
)

// IndexFunc returns the values under which an index finds an object: none, one or many. Callers must not modify the
// slice.
//
// Concurrency: the cache's one writer calls it, once per new state of an object, and locks no reader out meanwhile. It
// may read the cache but must not add indexes.
//
// Errors: the object stays in the cache, but is missing from this index, and the informer's Health reports the error. A
// panic counts as an error.
type IndexFunc[T any] func(obj T) ([]string, error)

// entry is one object in the cache. There are as many as objects, so the fields are no wider than they have to be.
type entry[T any] struct {
	key string
	obj T
	// scope is the reflector that it came from. A Replace of another scope does not touch it.
	scope int32
	// mark is the number of the last Replace that listed it.
	mark uint32
	// places has the position of the entry in each bucket that holds it; nil once the entry was removed from the cache.
	// Invariant: for each place p, p.bucket.entries[p.pos] is this entry; places[0] is in the bucket of all objects.
	places []place[T]
}

// place is a position in a bucket.
type place[T any] struct {
	bucket *bucket[T]
	pos    int
}

// bucket is a set of objects that is read as a slice: all objects, or those under one value of one index. Their order
// is arbitrary, but the same sequence of changes always leads to the same order.
//
// The obvious design, a map of sets, costs a lookup for each object read. Here a read copies a slice. Adding and
// removing are still O(1), because each entry knows its positions: removing moves the last entry into the gap. An
// update that does not change the index values writes one pointer to each bucket.
type bucket[T any] struct {
	// index is nil for the bucket of all objects.
	index   *index[T]
	value   string
	entries []*entry[T]
	// objs is what readers copy. Invariant: objs[i] is entries[i].obj.
	objs []T
	// readers counts the loops that iterate over the array of objs. While there are any, the writer must not modify the
	// array: it continues with a copy of objs and a new count.
	readers *atomic.Int32
}

// index is a named set of buckets.
type index[T any] struct {
	name string
	// label is the label key of a [LabelIndex]; "" for other indexes.
	label string
	// f is nil for the built-in index by namespace.
	f       IndexFunc[T]
	buckets map[string]*bucket[T]
}

// term is a value in an index.
type term[T any] struct {
	index *index[T]
	value string
}

// terms appends the terms of obj. It leaves out index functions that fail; err is one of their errors.
func terms[T any](dst []term[T], indexes []*index[T], obj T) (_ []term[T], err error) {
	for _, ix := range indexes {
		if ix.f == nil {
			if m, ok := any(obj).(metav1.Object); ok && m.GetNamespace() != "" {
				dst = append(dst, term[T]{index: ix, value: m.GetNamespace()})
			}
			continue
		}
		values, failed := ix.values(obj)
		if failed != nil {
			err = fmt.Errorf("index %s of %s: %w", ix.name, identity.Describe(obj), failed)
			continue
		}
		dst = ix.append(dst, values)
	}
	return dst, err
}

// fewTerms is the number of terms per object up to which a linear search is cheaper than a map.
const fewTerms = 32

// append appends a term for each distinct value.
func (ix *index[T]) append(dst []term[T], values []string) []term[T] {
	if len(values) > fewTerms {
		seen := make(map[string]struct{}, len(values))
		for _, v := range values {
			if _, again := seen[v]; !again {
				seen[v] = struct{}{}
				dst = append(dst, term[T]{index: ix, value: v})
			}
		}
		return dst
	}
	start := len(dst)
	for _, v := range values {
		t := term[T]{index: ix, value: v}
		if !slices.Contains(dst[start:], t) {
			dst = append(dst, t)
		}
	}
	return dst
}

// lookup returns the key of obj and the entry that has it. The caller holds write. Without a key function, lookup
// allocates only for new objects.
func (x *Indexer[T]) lookup(obj T) (key string, e *entry[T], err error) {
	if x.key != nil {
		key, err = x.key(obj)
		return key, x.entries[key], err
	}
	m, ok := any(obj).(metav1.Object)
	if !ok {
		return "", nil, errors.New("it has no metadata")
	}
	var room [256]byte
	b := room[:0]
	if namespace := m.GetNamespace(); namespace != "" {
		b = append(append(b, namespace...), '/')
	}
	b = append(b, m.GetName()...)
	if e := x.entries[string(b)]; e != nil {
		return e.key, e, nil
	}
	return string(b), nil, nil
}

// find returns the entry that has the key of p now. The same batch may have changed it since lookup.
func (x *Indexer[T]) find(p preparedObject[T]) *entry[T] {
	if p.entry != nil && p.entry.places != nil {
		return p.entry
	}
	return x.entries[p.key]
}

// values calls the index function.
func (ix *index[T]) values(obj T) (values []string, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return ix.f(obj)
}

// bucket returns the bucket of value, and creates it if needed.
func (ix *index[T]) bucket(value string) *bucket[T] {
	b := ix.buckets[value]
	if b == nil {
		b = &bucket[T]{index: ix, value: value}
		ix.buckets[value] = b
	}
	return b
}

// own makes objs safe to modify: it copies the array if a loop iterates over it.
func (b *bucket[T]) own() {
	if b.readers == nil {
		return
	}
	if b.readers.Load() > 0 {
		b.objs = slices.Clone(b.objs)
	}
	b.readers = nil
}

// read returns a copy of the objects. b may be nil.
func (b *bucket[T]) read() []T {
	if b == nil {
		return nil
	}
	return slices.Clone(b.objs)
}

// keys returns the keys of the objects. b may be nil.
func (b *bucket[T]) keys() (keys []string) {
	if b == nil {
		return nil
	}
	keys = make([]string, 0, len(b.entries))
	for _, e := range b.entries {
		keys = append(keys, e.key)
	}
	return keys
}

// share returns the objects for an iteration, and the count of readers, which the caller lowers when the iteration
// ends. The caller holds the write lock.
func (b *bucket[T]) share() ([]T, *atomic.Int32) {
	if b.readers == nil {
		b.readers = new(atomic.Int32)
	}
	b.readers.Add(1)
	return b.objs, b.readers
}

// grow makes room for n more entries.
func (b *bucket[T]) grow(n int) {
	b.entries, b.objs = slices.Grow(b.entries, n), slices.Grow(b.objs, n)
}

// add puts e into b.
func (b *bucket[T]) add(e *entry[T]) {
	e.places = append(e.places, place[T]{bucket: b, pos: len(b.entries)})
	b.entries = append(b.entries, e)
	b.objs = append(b.objs, e.obj) // No iteration reads beyond its own length, so own is not needed.
}

// remove removes e from the bucket at e.places[i]. It does not change e.places.
func (e *entry[T]) remove(i int) {
	p := e.places[i]
	b := p.bucket
	last := len(b.entries) - 1
	b.own()
	var none T
	b.objs[p.pos], b.objs[last] = b.objs[last], none
	b.objs = b.objs[:last]
	if p.pos != last {
		moved := b.entries[last]
		b.entries[p.pos] = moved
		for j := range moved.places {
			if moved.places[j].bucket == b {
				moved.places[j].pos = p.pos
				break
			}
		}
	}
	b.entries[last] = nil
	b.entries = b.entries[:last]
	if last == 0 && b.index != nil {
		delete(b.index.buckets, b.value) // An index over unique values would otherwise keep an empty bucket for each.
	}
}

// show makes readers see obj at p.
func (p place[T]) show(obj T) {
	p.bucket.own()
	p.bucket.objs[p.pos] = obj
}

// set gives e a new state, and moves e to the buckets of want.
func (e *entry[T]) set(obj T, want []term[T]) {
	e.obj = obj
	if e.indexedAs(want) {
		for _, p := range e.places {
			p.show(obj)
		}
		return
	}
	if max(len(want), len(e.places)) > fewTerms {
		e.setMany(want)
		return
	}
	kept := e.places[:0]
	for i, p := range e.places {
		if i == 0 || slices.Contains(want, term[T]{index: p.bucket.index, value: p.bucket.value}) {
			p.show(obj)
			kept = append(kept, p)
		} else {
			e.remove(i)
		}
	}
	clear(e.places[len(kept):])
	e.places = kept
	for _, t := range want {
		if !e.in(t) {
			t.index.bucket(t.value).add(e)
		}
	}
}

// setMany moves e, which has its new state, to the buckets of want. It does the work of set when there are many terms,
// with a map instead of a search for each term.
func (e *entry[T]) setMany(want []term[T]) {
	missing := make(map[term[T]]struct{}, len(want))
	for _, t := range want {
		missing[t] = struct{}{}
	}
	kept := e.places[:0]
	for i, p := range e.places {
		t := term[T]{index: p.bucket.index, value: p.bucket.value}
		if _, wanted := missing[t]; i == 0 || wanted {
			p.show(e.obj)
			kept = append(kept, p)
			delete(missing, t)
		} else {
			e.remove(i)
		}
	}
	clear(e.places[len(kept):])
	e.places = kept
	for _, t := range want {
		if _, is := missing[t]; is {
			t.index.bucket(t.value).add(e)
		}
	}
}

// indexedAs reports whether e is in exactly the buckets of want, which is usual for an update.
func (e *entry[T]) indexedAs(want []term[T]) bool {
	if len(e.places) != len(want)+1 {
		return false
	}
	for i, t := range want {
		if b := e.places[i+1].bucket; b.index != t.index || b.value != t.value {
			return false
		}
	}
	return true
}

func (e *entry[T]) in(t term[T]) bool {
	for _, p := range e.places[1:] {
		if p.bucket.index == t.index && p.bucket.value == t.value {
			return true
		}
	}
	return false
}
