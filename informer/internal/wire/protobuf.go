package wire

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// protobufMagic begins every object that Kubernetes encodes as protobuf. An envelope follows, a runtime.Unknown
// message.
//
// Source: k8s.io/apimachinery/pkg/runtime/serializer/protobuf, v0.37.2.
var protobufMagic = []byte("k8s\x00")

// maxFrame is the largest size of a watch event in bytes, as in client-go for protobuf. It is also the largest size of
// an object in a list, in either encoding. A larger length is taken for garbage.
const maxFrame = 16 << 20

var errLarge = fmt.Errorf("an object has more than %d MiB", maxFrame>>20)

// keptFrame is the size of the largest buffer that is kept for the next event. Without a limit, a watch would hold the
// buffer of its largest event until the watch ends.
const keptFrame = 64 << 10

var errTruncated = errors.New("protobuf message is cut short")

// fields calls each for every length-delimited field of a message, with its number and content. It copies nothing.
//
// Source: https://protobuf.dev/programming-guides/encoding.
func fields(data []byte, each func(number uint64, content []byte) error) error {
	for len(data) > 0 {
		tag, n := binary.Uvarint(data)
		if n <= 0 {
			return errTruncated
		}
		data = data[n:]
		switch tag & 7 {
		case 0: // A number.
			if _, n = binary.Uvarint(data); n <= 0 {
				return errTruncated
			}
			data = data[n:]
		case 1, 5: // A number of 8 or 4 bytes.
			n = 8
			if tag&7 == 5 {
				n = 4
			}
			if len(data) < n {
				return errTruncated
			}
			data = data[n:]
		case 2: // Bytes: a string or a message.
			size, n := binary.Uvarint(data)
			if n <= 0 || size > uint64(len(data)-n) {
				return errTruncated
			}
			content := data[n : n+int(size)]
			data = data[n+int(size):]
			if err := each(tag>>3, content); err != nil {
				return err
			}
		default:
			return fmt.Errorf("protobuf wire type %d", tag&7)
		}
	}
	return nil
}

// envelope is a runtime.Unknown message: the kind, and the encoded object.
type envelope struct {
	kind string
	raw  []byte
}

func openEnvelope(data []byte) (e envelope, err error) {
	err = fields(data[len(protobufMagic):], func(number uint64, content []byte) (err error) {
		switch number {
		case 1:
			e.kind, err = kindOf(content)
		case 2:
			e.raw = content
		}
		return err
	})
	return e, err
}

// kindOf reads the kind, field 2, of a TypeMeta message.
func kindOf(data []byte) (kind string, err error) {
	err = fields(data, func(number uint64, content []byte) error {
		if number == 2 {
			kind = string(content)
		}
		return nil
	})
	return kind, err
}
