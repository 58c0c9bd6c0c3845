package lean

import (
	"hash/maphash"
	"sync"
	"unsafe"
)

// Decoder decodes objects so that they share equal strings and equal parts.
type Decoder struct {
	mu sync.Mutex
	// share is true if the current object may share parts with other objects.
	share bool
	words words

	// parts has the shared parts of messages. sites has statistics about their fields.
	parts table[*part]
	sites sites

	// The fields below do the same for objects that are decoded into maps. The keys of maps are not known in advance,
	// so keys with the same hash share a site.
	boxes           boxes
	trees           table[*tree]
	keys            site
	texts, subtrees sites
}

// part is a value that several messages share.
type part struct {
	// kind is the kind of the field that the part was decoded for; see [field].
	kind uint64
	// value points to what the field points to, or to a copy of the struct in the field.
	value unsafe.Pointer
	wire  string
}

// tree is an object or array of JSON that several objects decoded into maps share.
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

// mostWords and mostParts limit the number of places in a table, and mostBytes limits the bytes of all parts, and of
// all trees. Tables begin small and grow. At its largest, the array of places takes 384 KiB for words or boxes, and 1
// MiB for parts or trees.
const (
	mostWords = 1 << 14
	mostParts = 1 << 16
	mostBytes = 16 << 20
)

// NewDecoder returns a decoder with empty tables.
func NewDecoder() *Decoder {
	seed := maphash.MakeSeed()
	return &Decoder{
		words: words{seed: seed, table: table[string]{most: mostWords}},
		parts: table[*part]{most: mostParts, size: (*part).size},
		boxes: boxes{seed: seed, table: table[any]{most: mostWords}},
		trees: table[*tree]{most: mostParts, size: (*tree).size},
	}
}
