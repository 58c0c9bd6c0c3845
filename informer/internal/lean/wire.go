package lean

import (
	"encoding/binary"
	"errors"
)

// errUnusual reports that a message is not written the way Kubernetes writes it: it is cut short, repeats a field, or
// has a field of another type. The standard decoder then decodes it, or finds the error to report.
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

// record is the position of one field on the wire.
type record struct {
	// tag is the field's number and wire type.
	tag uint64
	// value is the value of a varint.
	value uint64
	// start and end are the limits of the content of a length-delimited field. The next record begins at end, whatever
	// the type.
	start, end int
}

func (r record) number() uint64 { return r.tag >> 3 }
func (r record) wire() uint8    { return uint8(r.tag & 7) }

// next reads the record at a position. Its end is 0 if there is none.
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

// varint reads the number at a position, and returns the position after it. end is 0 if there is none.
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

// run returns the end of a run of records of the same field, and their number. first is the first of them. Kubernetes
// writes the elements of a repeated field, and the entries of a map, one after the other. The end is 0 if a record is
// unusual.
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
