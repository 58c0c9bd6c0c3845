package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/flyball-dev/flyball/informer/internal/lean"
	"github.com/flyball-dev/flyball/informer/objects"
)

// Frame is one event of a watch, not decoded.
type Frame struct {
	Kind   string
	Object []byte
	// json is the object when it came as JSON.
	json lean.Value
}

// FrameReader cuts the body of a watch into frames. What it returned is valid until the next call.
type FrameReader interface {
	// Errors: io.EOF at the end of a frame; io.ErrUnexpectedEOF within one; a [*objects.DecodeError]; the connection's.
	Next() (Frame, error)
}

// NewFrameReader returns the reader for a body that begins with first. A protobuf frame begins with its length in
// four bytes, big end first, of which the first is 0 for any frame below 16 MiB.
func NewFrameReader(first byte, in io.Reader) FrameReader {
	if first == 0 {
		return &protobufFrames{in: in}
	}
	return &jsonFrames{in: newJSONStream(in, watchBuffer)}
}

// jsonFrames reads JSON objects one after the other.
type jsonFrames struct{ in *jsonStream }

func (r *jsonFrames) Next() (f Frame, err error) {
	v, err := r.in.value()
	var malformed *objects.DecodeError
	if errors.As(err, &malformed) {
		return f, &objects.DecodeError{What: "watch event", Err: malformed.Err}
	}
	if err != nil {
		return f, err
	}
	v.Members(func(key []byte, v lean.Value) bool {
		switch string(key) {
		case "type":
			f.Kind = string(v.Text())
		case "object":
			f.json, f.Object = v, v.Bytes()
		}
		return true
	})
	if f.Object == nil {
		return f, &objects.DecodeError{What: "watch event", Err: errors.New("it has no object")}
	}
	return f, nil
}

// protobufFrames reads messages WatchEvent, each behind its length.
type protobufFrames struct {
	in   io.Reader
	buf  []byte
	head [4]byte
}

func (r *protobufFrames) Next() (Frame, error) {
	if _, err := io.ReadFull(r.in, r.head[:]); err != nil {
		return Frame{}, err // io.EOF when not even one byte came.
	}
	size := binary.BigEndian.Uint32(r.head[:])
	if size > maxFrame {
		return Frame{}, &objects.DecodeError{What: "watch event", Err: fmt.Errorf("frame of %d bytes too large", size)}
	}
	if cap(r.buf) < int(size) || cap(r.buf) > keptFrame {
		r.buf = make([]byte, size)
	}
	r.buf = r.buf[:size]
	if _, err := io.ReadFull(r.in, r.buf); err != nil {
		if errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return Frame{}, err
	}
	return openEvent(r.buf)
}

// openEvent reads a message WatchEvent: 1 type, 2 a RawExtension, whose 1 is the object.
func openEvent(data []byte) (f Frame, err error) {
	// Some servers wrap the event itself in an envelope.
	if bytes.HasPrefix(data, protobufMagic) {
		e, err := openEnvelope(data)
		if err != nil {
			return f, &objects.DecodeError{What: "watch event", Err: err}
		}
		data = e.raw
	}
	err = fields(data, func(number uint64, content []byte) error {
		switch number {
		case 1:
			f.Kind = string(content)
		case 2:
			return fields(content, func(number uint64, content []byte) error {
				if number == 1 {
					f.Object = content
				}
				return nil
			})
		}
		return nil
	})
	if err == nil && !bytes.HasPrefix(f.Object, protobufMagic) {
		f.json, err = lean.ValueOf(f.Object)
	}
	if err != nil {
		return f, &objects.DecodeError{What: "watch event", Err: err}
	}
	return f, nil
}
