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
}

type place[V any] struct {
	hash  uint64
	value V
	taken bool
	// met says that the value was asked for again since it last had to defend its place.
	met bool
}

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
	a, b := t.pair(hash)
	switch {
	case a.hash == hash && a.taken:
		return a
	case b.hash == hash && b.taken:
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
	switch {
	case a.taken && a.met && b.taken && b.met:
		a.met, b.met = false, false
		return
	case a.taken && a.met:
		a = b
	case a.taken && !b.met && uint32(t.missed)*0x9E3779B1>>31 == 0:
		*b = *a
	}
	*a = place[V]{hash: hash, value: v, taken: true}
}

// grow doubles the table.
func (t *table[V]) grow() {
	old := t.places
	t.places, t.missed = make([]place[V], 2*len(old)), 0
	for _, p := range old {
		if !p.taken {
			continue
		}
		if a, b := t.pair(p.hash); !a.taken {
			*a = p
		} else {
			*b = p
		}
	}
}

// site is what is known about one field: whether its values recur.
type site struct {
	asked, found uint16
	// unique says that they do not, as names and times do not. Then only a sixteenth of them is looked up, chosen by
	// its hash, so that it is found out when that changes.
	unique bool
}

// A field is judged by this many values.
const judged = 4096

// worth reports whether a value with that hash is to be looked up.
func (s *site) worth(hash uint64) bool {
	if s.unique && hash>>60 != 0 {
		return false
	}
	if s.asked++; s.asked == judged {
		s.unique = s.found < judged/8
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
