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

func (p *part) size() int {
	if p == nil {
		return 0
	}
	return len(p.wire)
}

func (t *tree) size() int {
	if t == nil {
		return 0
	}
	return len(t.text)
}

// The numbers of places that a decoder may come to have, and of bytes that its parts, and its trees, may have together.
// In a cache of that many objects they take a few hundred kilobytes. Tables begin small.
const (
	mostWords = 1 << 14
	mostParts = 1 << 16
	mostBytes = 16 << 20
)

// NewDecoder returns a decoder that knows nothing yet.
func NewDecoder() *Decoder {
	seed := maphash.MakeSeed()
	return &Decoder{
		words: words{seed: seed, table: table[string]{most: mostWords}},
		parts: table[*part]{most: mostParts, size: (*part).size},
		boxes: boxes{seed: seed, table: table[any]{most: mostWords}},
		trees: table[*tree]{most: mostParts, size: (*tree).size},
	}
}
