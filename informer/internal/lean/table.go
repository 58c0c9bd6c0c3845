package lean

// table remembers values by hash and forgets them: it has a number of places, two for each hash, in which what is met
// again stays and what is not makes room. A map of all that was ever seen, the obvious design, would never give back
// what is gone from the cluster.
type table[V any] struct {
	// places is a power of two long; nil until the first value.
	places []place[V]
	// missed counts the values placed since the table has its size.
	missed int
	// most bounds the number of places.
	most int
	// size returns how many bytes a value takes; nil if the number of places bounds them well enough. bytes is the sum
	// over all places, at most mostBytes. hand is the next place that makes room for bytes.
	size  func(V) int
	bytes int
	hand  int
}

type place[V any] struct {
	// hash has the place's flags in its highest bits, so that two places are in one line of the CPU's cache.
	hash  uint64
	value V
}

const (
	// taken says that the place has a value.
	taken uint64 = 1 << 63
	// met says that the value was asked for again since it last had to defend its place.
	met   uint64 = 1 << 62
	flags        = taken | met
)

func (p *place[V]) is(flag uint64) bool { return p.hash&flag != 0 }

// firstPlaces is small: most informers are.
const firstPlaces = 64

// pair returns the two places for a hash.
func (t *table[V]) pair(hash uint64) (a, b *place[V]) {
	if t.places == nil {
		t.places = make([]place[V], firstPlaces)
	}
	at := int(hash) & (len(t.places) - 1)
	return &t.places[at], &t.places[at^1]
}

// find returns the place of a hash; nil when it has none.
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

// put gives the value a place, if one of the two holds nothing that was met again lately. Of two that were not, now
// the older goes, now the newer: three values that recur in turn would drive each other out for ever if one rule
// chose.
func (t *table[V]) put(hash uint64, v V) {
	if t.missed++; t.missed > len(t.places) && len(t.places) < t.most {
		t.grow()
	}
	a, b := t.pair(hash) // a is the newer, unless it was met.
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

// keep gives the hash a value in the place that it has. It does nothing if the hash has lost its place since put, or if
// the value is so large that others would have to go for it.
func (t *table[V]) keep(hash uint64, v V) {
	size := t.sizeOf(v)
	if size > mostBytes/8 {
		return
	}
	for ; t.bytes+size > mostBytes; t.hand++ { // second chance: what was met since the hand came by last stays
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

// grow doubles the table.
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

// site is what is known about one field: whether its values recur.
type site struct {
	asked, found uint16
	// unique is how many more values are not looked up, because they do not recur, as names and times do not.
	unique uint16
}

// A field is judged by judged values. When they do not recur, that many times rested are not looked up, and then it is
// judged again: so it is found out when that changes.
const (
	judged = 4096
	rested = 15
)

// worth reports whether the next value is to be looked up.
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

// sites has one for each field.
type sites []site

func (s *sites) of(number int) *site {
	for number >= len(*s) {
		*s = append(*s, make([]site, number+1)...)
	}
	return &(*s)[number]
}
