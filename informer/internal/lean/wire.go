package lean

import (
	"encoding/binary"
	"errors"
)

// errUnusual says that a message is not written the way Kubernetes writes it: cut short, a field twice, a type of
// another kind. Such a message is left to the standard decoder, which knows what it means, or how to word what is
// wrong with it.
var errUnusual = errors.New("protobuf message has an unusual encoding")

// The wire types of protobuf.
//
// Source: https://protobuf.dev/programming-guides/encoding.
const (
	wireVarint = 0
	wireFixed8 = 1
	wireBytes  = 2
	wireFixed4 = 5
)

// record is where one field of a message stands on the wire.
type record struct {
	// tag is the number of the field and its wire type.
	tag uint64
	// value is that of a varint.
	value uint64
	// start and end are where the content of a length-delimited field begins and ends. The next record begins at end,
	// of any type.
	start, end int
}

func (r record) number() uint64 { return r.tag >> 3 }
func (r record) wire() uint8    { return uint8(r.tag & 7) }

// next reads the record at a position, which is not behind the last one; its end is 0 when there is none.
func next(data []byte, at int) (r record) {
	r.tag, at = varint(data, at)
	if at == 0 || r.tag>>3 == 0 || r.tag>>3 > 1<<29-1 {
		return record{}
	}
	switch r.tag & 7 {
	case wireVarint:
		r.value, r.end = varint(data, at)
		return r
	case wireBytes:
		length, at := varint(data, at)
		if at == 0 || length > uint64(len(data)-at) {
			return record{}
		}
		r.start, r.end = at, at+int(length)
		return r
	case wireFixed8:
		r.end = at + 8
	case wireFixed4:
		r.end = at + 4
	}
	if r.end > len(data) {
		return record{}
	}
	return r
}

// varint reads the number at a position, and returns the position behind it; 0 when there is none.
func varint(data []byte, at int) (value uint64, end int) {
	if at < len(data) && data[at] < 0x80 {
		return uint64(data[at]), at + 1
	}
	return longVarint(data, at)
}

func longVarint(data []byte, at int) (value uint64, end int) {
	value, size := binary.Uvarint(data[min(at, len(data)):])
	if size <= 0 {
		return 0, 0
	}
	return value, at + size
}

// run returns the end of the records behind first, whose tag stands at a position, that carry the same field, and how
// many there are with it. Kubernetes writes all elements of a repeated field, and all entries of a map, one behind the
// other. The end is 0 when one of them is unusual.
func run(data []byte, first record) (end, count int) {
	end, count = first.end, 1
	for end < len(data) {
		if tag, at := varint(data, end); at == 0 || tag != first.tag {
			break
		}
		r := next(data, end)
		if r.end == 0 {
			return 0, 0
		}
		end = r.end
		count++
	}
	return end, count
}
