package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kjson "sigs.k8s.io/json"

	"github.com/flyball-dev/flyball/informer/internal/lean"
	"github.com/flyball-dev/flyball/informer/objects"
)

// watchBuffer is how many bytes of a watch are read at once.
const watchBuffer = 4 << 10

// Frame is one event of a watch, before its object is decoded.
type Frame struct {
	Kind   string
	Object []byte
	// json is the object, if it is JSON.
	json lean.Value
}

// FrameReader splits the body of a watch into frames. A frame is valid until the next call.
type FrameReader interface {
	// Errors: io.EOF if the body ends between two frames, and io.ErrUnexpectedEOF if it ends within one; a
	// [*objects.DecodeError]; errors of the connection.
	Next() (Frame, error)
}

// NewFrameReader returns the reader for a body whose first byte is first. A protobuf frame begins with its length, four
// bytes in big-endian order, so its first byte is 0 if the frame is smaller than 16 MiB.
func NewFrameReader(first byte, in io.Reader) FrameReader {
	if first == 0 {
		return &protobufFrames{in: in}
	}
	return &jsonFrames{in: newJSONStream(in, watchBuffer)}
}

// jsonFrames reads a sequence of JSON objects.
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

// protobufFrames reads a sequence of WatchEvent messages, each preceded by its length.
type protobufFrames struct {
	in   io.Reader
	buf  []byte
	head [4]byte
}

func (r *protobufFrames) Next() (Frame, error) {
	if _, err := io.ReadFull(r.in, r.head[:]); err != nil {
		return Frame{}, err // io.EOF if the body ended before the first byte.
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

// openEvent reads a WatchEvent message. Its field 1 is the type; field 2 is a RawExtension, whose field 1 is the
// object.
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

// Status returns the object of an ERROR event as an error.
func (d *Decoder[T]) Status(data []byte) error {
	var s metav1.Status
	var err error
	if bytes.HasPrefix(data, protobufMagic) {
		var e envelope
		if e, err = openEnvelope(data); err == nil {
			err = s.Unmarshal(e.raw)
		}
	} else {
		err = kjson.UnmarshalCaseSensitivePreserveInts(data, &s)
	}
	if err != nil {
		return &objects.DecodeError{What: "error response", Err: err}
	}
	if s.Code == 0 && s.Message == "" && s.Reason == "" {
		return &objects.DecodeError{What: "error response", Err: errors.New("it is empty")}
	}
	return apierrors.FromObject(&s)
}
