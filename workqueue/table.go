package workqueue

import (
	"hash/maphash"
	"reflect"
	"time"

	"github.com/flyball-dev/flyball/workqueue/internal/ring"
)

// table finds the entry of a key.
//
// The obvious design is a Go map from key to *entry. At a million keys it costs 50 to 90 bytes a key, because it holds
// a second copy of the key, and each run of a key costs an insertion and a deletion. Here the entries themselves hold
// the keys, a slot of the index takes 4 bytes, and a hash 4. A key that soon comes back finds its entry still in place.
// docs/decisions/0002-queue-core.md has the numbers.
type table[K comparable] struct {
	// seed never changes, so that keys can be hashed without the queue's lock.
	seed maphash.Seed

	// index is a hash table with open addressing and linear probing. A slot is 0 if it is free. Otherwise its low bits
	// are an entry's id plus one, and its high bits are bits of the key's hash, which tell most keys apart without
	// reading the entry. The mask len(index)-1 separates the two.
	//
	// Invariant: its length is zero or a power of two, and at most half of its slots are taken. So probe sequences are
	// short, and ids, which are dense, fit in the low bits.
	index []uint32

	// blocks hold the entries: id i is blocks[i/blockSize][i%blockSize]. Entries never move.
	blocks []*[blockSize]entry[K]
	// since holds when the key of each entry last became dirty, in blocks as above. It has only the blocks that
	// dirtySince was asked for: none in a queue that does not measure time.
	since []*[blockSize]time.Duration
	// next is one more than the highest id that was ever used. free holds the lower ids that are not in use.
	next uint32
	free []uint32

	// idle counts the entries that hold nothing but their key. At most keep of them are kept, for keys that come back.
	idle, keep int
	// evicted has the fingerprints of keys whose idle entries were evicted recently, each in the slot that other bits
	// of its hash select. If a key that is inserted finds its fingerprint here, its entry was evicted too early; see
	// adapt. evicted is nil until an entry is evicted.
	evicted *[keepMost]uint16
	// retired holds ids in the order in which their entries became idle. An entry that is used again stays in it, and
	// is skipped when its turn comes.
	//
	// Invariant: an id is in it exactly once if entry.retired is true, and not at all otherwise. Every idle entry is
	// retired.
	retired ring.Ring[uint32]

	// homes has the low bits of the hash of each entry's key, in blocks like the entries. Keys are hashed when they are
	// inserted, and not again: what a key refers to is no longer in the processor's cache when its entry is evicted.
	homes []*[blockSize]uint32
}

const (
	// blockSize keeps the memory of a small queue small; blocks of this many entries fill Go's size classes well.
	blockSize = 32
	// keepFirst is table.keep at first, and keepLeast and keepMost bound it, for keys that are plain data. 1024 idle
	// entries take about 60 KB.
	keepLeast, keepFirst, keepMost = 32, 1024, 16 * 1024
)

func newTable[K comparable]() table[K] {
	t := table[K]{seed: maphash.MakeSeed()}
	if plain(reflect.TypeFor[K]()) {
		t.keep = keepFirst
	}
	return t
}

// plain reports whether values of a type hold no references other than strings. An idle entry would keep alive whatever
// its key refers to, so an entry whose key is not plain is evicted as soon as it is idle.
func plain(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Interface, reflect.Chan, reflect.UnsafePointer:
		return false
	case reflect.Array:
		return plain(t.Elem())
	case reflect.Struct:
		for i := range t.NumField() {
			if !plain(t.Field(i).Type) {
				return false
			}
		}
	}
	return true
}

func (t *table[K]) at(id uint32) handle[K] {
	return handle[K]{&t.blocks[id/blockSize][id%blockSize], id}
}

// home returns where the low bits of the hash of an entry's key are stored, which select its first slot in the index.
func (t *table[K]) home(id uint32) *uint32 { return &t.homes[id/blockSize][id%blockSize] }

// dirtySince returns where the time is stored at which an entry's key became dirty.
func (t *table[K]) dirtySince(id uint32) *time.Duration {
	for len(t.since) <= int(id/blockSize) {
		t.since = append(t.since, new([blockSize]time.Duration))
	}
	return &t.since[id/blockSize][id%blockSize]
}

func (t *table[K]) hash(key K) uint64 { return maphash.Comparable(t.seed, key) }

// used returns the number of entries in the table.
func (t *table[K]) used() int { return int(t.next) - len(t.free) }

// find returns the key's entry, or nil. The entry may be idle.
func (t *table[K]) find(key K) *entry[K] { return t.search(key, t.hash(key)).entry }

// search is find for a key whose hash h is known.
func (t *table[K]) search(key K, h uint64) handle[K] {
	if len(t.index) == 0 {
		return handle[K]{}
	}
	high, mask := uint32(h>>32), uint32(len(t.index)-1)
	for i := uint32(h) & mask; ; i = (i + 1) & mask {
		slot := t.index[i]
		if slot == 0 {
			return handle[K]{}
		}
		if (slot^high)&^mask != 0 {
			continue
		}
		if e := t.at(slot&mask - 1); e.key == key {
			return e
		}
	}
}

// obtain returns the key's entry, which it inserts if there is none. The caller must not leave it idle. h is the key's
// hash.
func (t *table[K]) obtain(key K, h uint64) handle[K] {
	e := t.search(key, h)
	if e.entry == nil {
		return t.insert(key, h)
	}
	if e.idle() {
		t.idle--
	}
	return e
}

// insert adds a key that is not in the table.
func (t *table[K]) insert(key K, h uint64) handle[K] {
	if t.evicted != nil {
		t.adapt(h)
	}
	if 2*(t.used()+1) > len(t.index) {
		t.grow()
	}
	var id uint32
	if n := len(t.free); n > 0 {
		id, t.free = t.free[n-1], t.free[:n-1]
	} else {
		id = t.next
		t.next++
		if int(id/blockSize) == len(t.blocks) {
			t.blocks = append(t.blocks, new([blockSize]entry[K]))
			t.homes = append(t.homes, new([blockSize]uint32))
		}
	}
	e := t.at(id)
	*t.home(id) = uint32(h)
	*e.entry = entry[K]{key: key, place: none, delays: [delayKinds]int32{none, none}}
	t.link(id, uint32(h>>32))
	return e
}

// link puts an id into the first free slot at or after its home slot. high are the high bits of the hash.
func (t *table[K]) link(id, high uint32) {
	mask := uint32(len(t.index) - 1)
	i := *t.home(id) & mask
	for t.index[i] != 0 {
		i = (i + 1) & mask
	}
	t.index[i] = high&^mask | (id + 1)
}

func (t *table[K]) grow() {
	old := t.index
	t.index = make([]uint32, max(16, 2*len(old)))
	for _, slot := range old {
		if slot != 0 {
			t.link(slot&uint32(len(old)-1)-1, slot)
		}
	}
}

// retire takes back an entry that has become idle. The entry stays in the table until enough others have become idle
// after it.
func (t *table[K]) retire(e handle[K]) {
	e.attempt = 0
	t.idle++
	if !e.retired {
		e.retired = true
		t.retired.Push(e.id)
	}
	for t.idle > t.keep {
		t.evict()
	}
	if t.idle == t.used() && len(t.index) > 4*max(keepFirst, t.keep) { // More keys were in use than will be kept.
		t.index, t.blocks, t.homes, t.since, t.free, t.retired = nil, nil, nil, nil, nil, ring.Ring[uint32]{}
		t.next, t.idle = 0, 0
	}
}

// evict removes the entry that became idle first, unless it is in use.
func (t *table[K]) evict() {
	e := t.at(t.retired.Pop())
	e.retired = false
	if !e.idle() {
		return
	}
	if t.evicted == nil && t.keep > 0 {
		t.evicted = new([keepMost]uint16)
	}
	if t.evicted != nil {
		home := *t.home(e.id)
		t.evicted[home%keepMost] = fingerprint(home)
	}
	t.unlink(e.id)
	*e.entry = entry[K]{}
	t.free = append(t.free, e.id)
	t.idle--
}

// adapt adjusts keep to the number of keys that come back. It is called for each key that is inserted: a key that was
// evicted recently raises keep by one, and one in eight of the other keys lowers it by one. So a burst of keys that
// never come back leaves no memory behind.
func (t *table[K]) adapt(h uint64) {
	if home := uint32(h); t.evicted[home%keepMost] == fingerprint(home) {
		t.keep = min(t.keep+1, keepMost)
	} else if h>>61 == 0 {
		t.keep = max(t.keep-1, keepLeast)
	}
}

// fingerprint stands for a hash in table.evicted, whose slot other bits select. It is never zero, because zero marks a
// free slot.
func fingerprint(home uint32) uint16 { return uint16(home>>16) | 1 }

// unlink removes an id from the index. Ids behind the freed slot move up if their probe sequence crosses it, because
// search stops at a free slot.
func (t *table[K]) unlink(id uint32) {
	mask := uint32(len(t.index) - 1)
	gap := *t.home(id) & mask
	for t.index[gap]&mask != id+1 {
		gap = (gap + 1) & mask
	}
	for i := (gap + 1) & mask; t.index[i] != 0; i = (i + 1) & mask {
		if (i-*t.home(t.index[i]&mask - 1))&mask >= (i-gap)&mask {
			t.index[gap] = t.index[i]
			gap = i
		}
	}
	t.index[gap] = 0
}
