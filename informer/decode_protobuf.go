package informer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// protobufMagic begins every object that Kubernetes encodes as protobuf. An envelope follows: message runtime.Unknown.
//
// Source: k8s.io/apimachinery/pkg/runtime/serializer/protobuf, v0.37.2.
var protobufMagic = []byte("k8s\x00")

// maxFrame bounds one watch event, as client-go does: a length beyond it is not a length.
const maxFrame = 16 << 20

// keptFrame is how large a buffer is kept for the next event: a watch must not hold that of its largest for as long as it lasts.
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
	err = fields(data[len(protobufMagic):], func(number uint64, content []byte) error {
		switch number {
		case 1: // TypeMeta: 1 apiVersion, 2 kind.
			return fields(content, func(number uint64, content []byte) error {
				if number == 2 {
					e.kind = string(content)
				}
				return nil
			})
		case 2:
			e.raw = content
		}
		return nil
	})
	return e, err
}

// listProtobuf decodes a page item by item. Every list message of Kubernetes has its metadata in field 1, its items in 2.
func (d *decoder[T]) listProtobuf(data []byte, each func(T, error) error) (meta metav1.ListMeta, err error) {
	e, err := openEnvelope(data)
	if err != nil {
		return meta, &DecodeError{What: "list", Err: err}
	}
	if err := d.expectList(e.kind); err != nil {
		return meta, err
	}
	var failed error // An error that is worded already.
	err = fields(e.raw, func(number uint64, content []byte) error {
		switch number {
		case 1:
			return meta.Unmarshal(content)
		case 2:
			obj, err := d.objectProtobuf(content)
			if err == nil {
				err = d.check(obj)
			}
			failed = each(obj, err)
			return failed
		}
		return nil
	})
	if err != nil && failed == nil {
		return meta, &DecodeError{What: "list", Err: err}
	}
	return meta, failed
}

func (d *decoder[T]) objectProtobuf(data []byte) (T, error) {
	obj := d.new()
	into, ok := any(obj).(unmarshaler)
	if !ok {
		return obj, &DecodeError{What: "object", Err: fmt.Errorf("the server sent protobuf, which a %T cannot hold", obj)}
	}
	if err := into.Unmarshal(data); err != nil {
		return obj, unreadable(metadataProtobuf(data), err)
	}
	return obj, nil
}

// metadataProtobuf reads what names an object that could not be decoded. Every object message has its metadata in field 1.
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

// protobufFrames reads messages WatchEvent, each behind its length.
type protobufFrames struct {
	in   io.Reader
	buf  []byte
	head [4]byte
}

func (r *protobufFrames) next() (frame, error) {
	if _, err := io.ReadFull(r.in, r.head[:]); err != nil {
		return frame{}, err // io.EOF when not even one byte came.
	}
	size := binary.BigEndian.Uint32(r.head[:])
	if size > maxFrame {
		return frame{}, &DecodeError{What: "watch event", Err: fmt.Errorf("a frame of %d bytes", size)}
	}
	if cap(r.buf) < int(size) || cap(r.buf) > keptFrame {
		r.buf = make([]byte, size)
	}
	r.buf = r.buf[:size]
	if _, err := io.ReadFull(r.in, r.buf); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return frame{}, err
	}
	return openEvent(r.buf)
}

// openEvent reads a message WatchEvent: 1 type, 2 a RawExtension, whose 1 is the object.
func openEvent(data []byte) (f frame, err error) {
	// Some servers wrap the event itself in an envelope.
	if bytes.HasPrefix(data, protobufMagic) {
		e, err := openEnvelope(data)
		if err != nil {
			return f, &DecodeError{What: "watch event", Err: err}
		}
		data = e.raw
	}
	err = fields(data, func(number uint64, content []byte) error {
		switch number {
		case 1:
			f.kind = string(content)
		case 2:
			return fields(content, func(number uint64, content []byte) error {
				if number == 1 {
					f.object = content
				}
				return nil
			})
		}
		return nil
	})
	if err != nil {
		return f, &DecodeError{What: "watch event", Err: err}
	}
	return f, nil
}
