package lean

import (
	"hash/maphash"
	"sync"
	"unsafe"
)

// Decoder decodes objects so that they take little memory: equal strings are one, and so are equal parts of objects.
type Decoder struct {
	mu sync.Mutex
	// share reports whether the object under way may refer to parts of others.
	share bool
	words words

	// parts has what recurs in messages, sites what is known of their fields.
	parts table[*part]
	sites sites

	// The same for objects of maps. Their fields are not known beforehand: keys that have one hash have one site.
	boxes           boxes
	trees           table[*tree]
	keys            site
	texts, subtrees sites
}

// part is a value that several messages hold.
type part struct {
	// kind is that of the field that it was decoded for.
	kind uint64
	// value points to what the field points to, or to a copy of the struct that the field is.
	value unsafe.Pointer
	wire  string
}

// tree is a part of an object of maps that several objects hold.
type tree struct {
	text  []byte
	value any
}

// The numbers of places that a decoder may come to have: a few hundred kilobytes, in a cache of that many objects.
// Tables begin small.
const (
	mostWords = 1 << 14
	mostParts = 1 << 16
)

// NewDecoder returns a decoder that knows nothing yet.
func NewDecoder() *Decoder {
	seed := maphash.MakeSeed()
	return &Decoder{
		words: words{seed: seed, table: table[string]{most: mostWords}}, parts: table[*part]{most: mostParts},
		boxes: boxes{seed: seed, table: table[any]{most: mostWords}}, trees: table[*tree]{most: mostParts},
	}
}
