package wire

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer/objects"
)

// protobufMagic begins every object that Kubernetes encodes as protobuf. An envelope follows: message
// runtime.Unknown.
//
// Source: k8s.io/apimachinery/pkg/runtime/serializer/protobuf, v0.37.2.
var protobufMagic = []byte("k8s\x00")

// maxFrame bounds one watch event, as client-go does for protobuf: a length beyond it is not a length. It also bounds
// an object in a list, in either encoding.
const maxFrame = 16 << 20

var errLarge = fmt.Errorf("an object has more than %d MiB", maxFrame>>20)

// keptFrame is how large a buffer is kept for the next event: a watch must not hold that of its largest for as long
// as it lasts.
const keptFrame = 64 << 10

var errTruncated = errors.New("protobuf message is cut short")

// fields calls each with the number and content of every length-delimited field of a message. Nothing is copied.
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

// envelope is a message runtime.Unknown: the kind, and the object itself.
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

// kindOf reads a message TypeMeta: 1 apiVersion, 2 kind.
func kindOf(data []byte) (kind string, err error) {
	err = fields(data, func(number uint64, content []byte) error {
		if number == 2 {
			kind = string(content)
		}
		return nil
	})
	return kind, err
}

// listProtobuf decodes a page item by item, as it comes in. Every list message of Kubernetes has its metadata in
// field 1, its items in 2.
func (d *Decoder[T]) listProtobuf(in *bufio.Reader, o Options,
	each func(T, error) error,
) (m metav1.ListMeta, err error) {
	s := &protoStream{in: in, left: -1}
	if err := s.magic(); err != nil {
		return m, badList(err)
	}
	for isList := false; ; { // The fields of the envelope: 1 TypeMeta, 2 the list.
		number, wire, err := s.tag()
		if err == nil && number == 0 && !isList {
			return m, errNoList
		}
		if err != nil || number == 0 {
			return m, badList(err)
		}
		if number == 2 && wire == 2 {
			isList = true
			if err := d.messageList(s, &m, o, each); err != nil {
				return m, err
			}
			continue
		}
		content, err := s.content(wire, number == 1)
		if err != nil {
			return m, badList(err)
		}
		if number == 1 {
			kind, err := kindOf(content)
			if err != nil {
				return m, badList(err)
			}
			if err := d.expectList(kind); err != nil {
				return m, err
			}
		}
	}
}

// messageList decodes the list itself.
func (d *Decoder[T]) messageList(s *protoStream, m *metav1.ListMeta, o Options, each func(T, error) error) error {
	back, err := s.into()
	if err != nil {
		return badList(err)
	}
	defer back()
	for {
		number, wire, err := s.tag()
		if err != nil || number == 0 {
			return badList(err)
		}
		content, err := s.content(wire, number <= 2)
		if err != nil {
			return badList(err)
		}
		switch {
		case wire != 2:
		case number == 1:
			if err := m.Unmarshal(content); err != nil {
				return badList(err)
			}
		case number == 2:
			if err := d.item(content, o, each); err != nil {
				return err
			}
		}
	}
}

// item decodes an item of a list, unless it is held.
func (d *Decoder[T]) item(content []byte, o Options, each func(T, error) error) error {
	if o.Held != nil && o.Held(stateProtobuf(content)) {
		return nil
	}
	obj, err := d.objectProtobuf(content, o)
	if err == nil {
		err = d.Check(obj)
	}
	return each(obj, err)
}

// stateProtobuf reads which state of which object it is, without decoding it. Every object message has its metadata
// in field 1, and that the name in 1, the namespace in 3, the UID in 5 and the resource version in 6.
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
		return errTruncated // Of an object nothing else is needed.
	})
	return s
}

// badList tells a list that makes no sense from one that did not come to its end.
func badList(err error) error {
	var broken *brokenError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &broken):
		return fmt.Errorf("read the list: %w", broken.error)
	}
	return &objects.DecodeError{What: "list", Err: err}
}

func (d *Decoder[T]) objectProtobuf(data []byte, o Options) (T, error) {
	obj := d.New()
	if d.Lean != nil {
		if d.Lean.Unmarshal(data, obj, !o.Exclusive) == nil {
			return obj, nil
		}
		obj = d.New() // The standard decoder knows what to make of it.
	}
	into, ok := any(obj).(unmarshaler)
	if !ok {
		return obj, &objects.DecodeError{
			What: "object",
			Err:  fmt.Errorf("the server sent protobuf, which a %T cannot hold", obj),
		}
	}
	if err := into.Unmarshal(data); err != nil {
		return obj, unreadable(metadataProtobuf(data), err)
	}
	if d.Lean != nil {
		obj.SetManagedFields(nil)
	}
	return obj, nil
}

// metadataProtobuf reads what names an object that could not be decoded. Every object message has its metadata in
// field 1.
func metadataProtobuf(data []byte) (m metav1.ObjectMeta) {
	first := true
	_ = fields(data, func(number uint64, content []byte) error {
		if first && number == 1 && m.Unmarshal(content) != nil {
			m = metav1.ObjectMeta{}
		}
		first = false
		return nil
	})
	return m
}
