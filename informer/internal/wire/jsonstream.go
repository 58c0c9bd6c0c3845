package wire

import (
	"errors"
	"fmt"
	"io"

	"github.com/flyball-dev/flyball/informer/internal/lean"
	"github.com/flyball-dev/flyball/informer/objects"
)

// jsonStream splits a body into JSON values while it arrives. It holds one value at a time, of at most maxFrame bytes.
type jsonStream struct {
	in io.Reader
	// buf[begin:end] was read but not consumed yet.
	buf        []byte
	begin, end int
	index      lean.Index
}

func newJSONStream(in io.Reader, size int) *jsonStream {
	return &jsonStream{in: in, buf: make([]byte, size)}
}

// fill reads more bytes.
//
// Errors: those of the connection; io.EOF if the body ended before another byte.
func (s *jsonStream) fill() error {
	switch {
	case s.begin == s.end:
		s.begin, s.end = 0, 0
		if len(s.buf) > keptFrame {
			s.buf = make([]byte, keptFrame)
		}
	case s.end == len(s.buf) && s.begin > 0:
		s.end = copy(s.buf, s.buf[s.begin:s.end])
		s.begin = 0
	case s.end >= maxFrame:
		return &objects.DecodeError{What: "list", Err: errLarge}
	case s.end == len(s.buf):
		s.buf = append(s.buf, make([]byte, len(s.buf))...)
	}
	for {
		n, err := s.in.Read(s.buf[s.end:])
		s.end += n
		if n > 0 {
			return nil // The next Read returns the error again.
		}
		if err != nil {
			return err
		}
	}
}

// peek skips white space and returns the next character without consuming it.
//
// Errors: io.EOF at the end of the body; those of the connection.
func (s *jsonStream) peek() (byte, error) {
	for {
		for ; s.begin < s.end; s.begin++ {
			if c := s.buf[s.begin]; c > ' ' {
				return c, nil
			}
		}
		if err := s.fill(); err != nil {
			return 0, err
		}
	}
}

// value returns the next value, valid until the next call of any method.
//
// Errors: io.EOF if the body ends before the value, and io.ErrUnexpectedEOF if it ends within it; a
// [*objects.DecodeError]; errors of the connection.
func (s *jsonStream) value() (lean.Value, error) {
	if _, err := s.peek(); err != nil {
		return lean.Value{}, err
	}
	s.index.Reset()
	for {
		text := s.buf[s.begin:s.end]
		done, err := s.index.Scan(text)
		if err != nil {
			return lean.Value{}, &objects.DecodeError{What: "list", Err: err}
		}
		if done {
			s.begin += s.index.Len()
			return s.index.Value(text), nil
		}
		if err := s.fill(); err != nil {
			if errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			return lean.Value{}, err
		}
	}
}

// expect consumes the next character, which must be one of these, and returns it.
func (s *jsonStream) expect(these string) (byte, error) {
	c, err := s.peek()
	if err != nil {
		return 0, err
	}
	for i := range len(these) {
		if c == these[i] {
			s.begin++
			return c, nil
		}
	}
	return 0, &objects.DecodeError{What: "list", Err: fmt.Errorf("got %q, expected one of %q", c, these)}
}
