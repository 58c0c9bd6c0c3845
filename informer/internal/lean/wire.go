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

// record is one field of a message as it stands on the wire.
type record struct {
	number uint64
	wire   uint8
	// value is that of a varint.
	value uint64
	// content is that of a length-delimited field.
	content []byte
}

// next reads the record at the beginning of data, and returns how many bytes it takes.
func next(data []byte) (r record, size int, err error) {
	tag, at := varint(data)
	if at == 0 || tag>>3 == 0 || tag>>3 > 1<<29-1 {
		return r, 0, errUnusual
	}
	r.number, r.wire = tag>>3, uint8(tag&7)
	switch r.wire {
	case wireVarint:
		value, n := varint(data[at:])
		if n == 0 {
			return r, 0, errUnusual
		}
		r.value = value
		return r, at + n, nil
	case wireBytes:
		length, n := varint(data[at:])
		if n == 0 || length > uint64(len(data)-at-n) {
			return r, 0, errUnusual
		}
		at += n
		r.content = data[at : at+int(length) : at+int(length)]
		return r, at + int(length), nil
	case wireFixed8:
		at += 8
	case wireFixed4:
		at += 4
	default:
		return r, 0, errUnusual
	}
	if at > len(data) {
		return r, 0, errUnusual
	}
	return r, at, nil
}

// varint reads a number; size 0 is none.
func varint(data []byte) (value uint64, size int) {
	if len(data) > 0 && data[0] < 0x80 {
		return uint64(data[0]), 1
	}
	value, size = binary.Uvarint(data)
	return value, max(0, size)
}

// run is the length of the records at the beginning of data that carry the same field as first, whose size is known,
// and how many they are. Kubernetes writes all elements of a repeated field, and all entries of a map, one behind the
// other.
func run(data []byte, first record, size int) (length, count int, err error) {
	length, count = size, 1
	tag, _ := varint(data)
	for length < len(data) {
		if again, n := varint(data[length:]); n == 0 || again != tag {
			break
		}
		_, n, err := next(data[length:])
		if err != nil {
			return 0, 0, err
		}
		length += n
		count++
	}
	_ = first
	return length, count, nil
}
