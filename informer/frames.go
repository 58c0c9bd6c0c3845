package informer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/flyball-dev/flyball/informer/internal/lean"
	"github.com/flyball-dev/flyball/informer/internal/objects"
)

// frame is one event of a watch, not decoded.
type frame struct {
	kind   string
	object []byte
	// json is the object when it came as JSON.
	json lean.Value
}

// frameReader cuts the body of a watch into frames. What it returned is valid until the next call.
type frameReader interface {
	// Errors: io.EOF at the end of a frame; io.ErrUnexpectedEOF within one; a [DecodeError]; the connection's.
	next() (frame, error)
}

// newFrameReader returns the reader for a body that begins with first. A protobuf frame begins with its length in four bytes,
// big end first, of which the first is 0 for any frame below 16 MiB.
func newFrameReader(first byte, in io.Reader) frameReader {
	if first == 0 {
		return &protobufFrames{in: in}
	}
	return &jsonFrames{in: newJSONStream(in, watchBuffer)}
}

// jsonFrames reads JSON objects one after the other.
type jsonFrames struct{ in *jsonStream }

func (r *jsonFrames) next() (f frame, err error) {
	v, err := r.in.value()
	var senseless *objects.DecodeError
	if errors.As(err, &senseless) {
		return f, &objects.DecodeError{What: "watch event", Err: senseless.Err}
	}
	if err != nil {
		return f, err
	}
	v.Members(func(key []byte, v lean.Value) bool {
		switch string(key) {
		case "type":
			f.kind = string(v.Text())
		case "object":
			f.json, f.object = v, v.Bytes()
		}
		return true
	})
	if f.object == nil {
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

func (r *protobufFrames) next() (frame, error) {
	if _, err := io.ReadFull(r.in, r.head[:]); err != nil {
		return frame{}, err // io.EOF when not even one byte came.
	}
	size := binary.BigEndian.Uint32(r.head[:])
	if size > maxFrame {
		return frame{}, &objects.DecodeError{What: "watch event", Err: fmt.Errorf("a frame of %d bytes", size)}
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
			return f, &objects.DecodeError{What: "watch event", Err: err}
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
	if err == nil && !bytes.HasPrefix(f.object, protobufMagic) {
		f.json, err = lean.ValueOf(f.object)
	}
	if err != nil {
		return f, &objects.DecodeError{What: "watch event", Err: err}
	}
	return f, nil
}
