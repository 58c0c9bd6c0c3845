package wire

import (
	"bytes"

	"github.com/flyball-dev/flyball/informer/internal/lean"
	"github.com/flyball-dev/flyball/informer/objects"
)

// State returns the state that an event is about, without decoding the object. It returns the zero State if the kind is
// not the expected one.
func (d *Decoder[T]) State(f Frame) (s objects.State) {
	if !bytes.HasPrefix(f.Object, protobufMagic) {
		return stateJSON(f.json)
	}
	if e, err := openEnvelope(f.Object); err == nil && d.expect(e.kind) == nil {
		return stateProtobuf(e.raw)
	}
	return s
}

// stateProtobuf reads the state of an object message. Its metadata is in field 1 of every such message; within that,
// the name is field 1, the namespace 3, the UID 5 and the resource version 6.
func stateProtobuf(data []byte) (s objects.State) {
	_ = fields(data, func(number uint64, content []byte) error {
		if number != 1 {
			return nil
		}
		_ = fields(content, func(number uint64, content []byte) error {
			switch number {
			case 1:
				s.Name = content
			case 3:
				s.Namespace = content
			case 5:
				s.UID = content
			case 6:
				s.ResourceVersion = content
			}
			return nil
		})
		return errTruncated // Any error stops the loop; the rest of the object is not needed.
	})
	return s
}

func stateJSON(item lean.Value) (s objects.State) {
	item.Members(func(key []byte, v lean.Value) bool {
		if string(key) != "metadata" {
			return true
		}
		v.Members(func(key []byte, v lean.Value) bool {
			switch string(key) {
			case "namespace":
				s.Namespace = v.Text()
			case "name":
				s.Name = v.Text()
			case "uid":
				s.UID = v.Text()
			case "resourceVersion":
				s.ResourceVersion = v.Text()
			}
			return true
		})
		return false
	})
	return s
}
