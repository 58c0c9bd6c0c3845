package lean

// table is a cache of limited size, keyed by hash. For each hash there are two places in which its value can be. A
// value that is found again keeps its place; others make room. The obvious design, a map of everything ever seen, would
// never release what is gone from the cluster.
type table[V any] struct {
	// The length of places is a power of two. places is nil until the first use.
	places []place[V]
	// missed counts the calls of put since the table last grew.
	missed int
	// most limits the number of places.
	most int
	// size returns the bytes that a value takes; nil if limiting the number of places is enough. bytes is the sum over
	// all places, at most mostBytes. hand is the next place to examine when bytes must be freed.
	size  func(V) int
	bytes int
	hand  int
}

type place[V any] struct {
	// hash has the flags of the place in its highest bits, so that two places fit in one cache line.
	hash  uint64
	value V
}

const (
	// taken is set if the place has a value.
	taken uint64 = 1 << 63
	// met is set when the value is found. It is cleared when another value wanted the place and did not get it.
	met   uint64 = 1 << 62
	flags        = taken | met
)

func (p *place[V]) is(flag uint64) bool { return p.hash&flag != 0 }

// firstPlaces is how many places a table begins with. It is small because most informers have few objects.
const firstPlaces = 64

// pair returns the two places for a hash. Which of them is a depends on the lowest bit of the hash.
func (t *table[V]) pair(hash uint64) (a, b *place[V]) {
	if t.places == nil {
		t.places = make([]place[V], firstPlaces)
	}
	at := int(hash) & (len(t.places) - 1)
	return &t.places[at], &t.places[at^1]
}

// find returns the place of a hash, or nil.
func (t *table[V]) find(hash uint64) *place[V] {
	hash &^= flags
	a, b := t.pair(hash)
	switch {
	case a.hash&^met == hash|taken:
		return a
	case b.hash&^met == hash|taken:
		return b
	}
	return nil
}

// put gives the value a place, unless the values in both places were found lately. If neither was, put replaces
// sometimes the one and sometimes the other: with a fixed rule, three values that take turns would replace each other
// for ever.
func (t *table[V]) put(hash uint64, v V) {
	if t.missed++; t.missed > len(t.places) && len(t.places) < t.most {
		t.grow()
	}
	a, b := t.pair(hash)
	gone := a
	switch {
	case a.is(met) && b.is(met):
		a.hash &^= met
		b.hash &^= met
		return
	case a.is(met):
		a, gone = b, b
	case a.is(taken) && !b.is(met) && uint32(t.missed)*0x9E3779B1>>31 == 0:
		gone = b
	}
	t.bytes -= t.sizeOf(gone.value)
	if gone != a {
		*b = *a
	}
	*a = place[V]{hash: hash&^flags | taken, value: v}
}

// keep stores a value for the hash in its place. It does nothing if the hash has lost its place since put, or if the
// value takes more than an eighth of mostBytes.
func (t *table[V]) keep(hash uint64, v V) {
	size := t.sizeOf(v)
	if size > mostBytes/8 {
		return
	}
	for ; t.bytes+size > mostBytes; t.hand++ { // Second chance: values found since the last round stay.
		if p := &t.places[t.hand&(len(t.places)-1)]; p.is(met) {
			p.hash &^= met
		} else {
			t.bytes -= t.sizeOf(p.value)
			*p = place[V]{}
		}
	}
	if p := t.find(hash); p != nil {
		t.bytes += size - t.sizeOf(p.value)
		p.value = v
	}
}

func (t *table[V]) sizeOf(v V) int {
	if t.size == nil {
		return 0
	}
	return t.size(v)
}

func (t *table[V]) grow() {
	old := t.places
	t.places, t.missed = make([]place[V], 2*len(old)), 0
	for _, p := range old {
		if !p.is(taken) {
			continue
		}
		if a, b := t.pair(p.hash); !a.is(taken) {
			*a = p
		} else {
			*b = p
		}
	}
}

// site counts how often the values of one field recur.
type site struct {
	asked, found uint16
	// unique is how many of the next values are not looked up, because the values of this field do not recur. Names and
	// times are such fields.
	unique uint16
}

// A field is judged after every judged lookups. If fewer than an eighth of them found a value, the next rested*judged
// values are not looked up. Then the field is judged again, in case its values have begun to recur.
const (
	judged = 4096
	rested = 15
)

// worth reports whether the next value should be looked up.
func (s *site) worth() bool {
	if s.unique > 0 {
		s.unique--
		return false
	}
	if s.asked++; s.asked == judged {
		if s.found < judged/8 {
			s.unique = rested * judged
		}
		s.asked, s.found = 0, 0
	}
	return true
}

// sites has a site for each field.
type sites []site

func (s *sites) of(number int) *site {
	for number >= len(*s) {
		*s = append(*s, make([]site, number+1)...)
	}
	return &(*s)[number]
}
