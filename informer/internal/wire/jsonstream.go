package wire

import (
	"errors"
	"fmt"
	"io"

	"github.com/flyball-dev/flyball/informer/internal/lean"
	"github.com/flyball-dev/flyball/informer/objects"
)

// jsonStream cuts a body into JSON values as it comes in, and keeps one at a time, of at most maxFrame bytes.
type jsonStream struct {
	in io.Reader
	// buf[begin:end] has been read and not been used.
	buf        []byte
	begin, end int
	index      lean.Index
}

func newJSONStream(in io.Reader, size int) *jsonStream {
	return &jsonStream{in: in, buf: make([]byte, size)}
}

// fill reads more.
//
// Errors: the connection's; io.EOF only when nothing more was read.
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
			return nil // An error comes again.
		}
		if err != nil {
			return err
		}
	}
}

// peek returns the next character that is not space, and goes there.
//
// Errors: io.EOF where the body ended in good order; the connection's.
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
// Errors: io.EOF before the value; io.ErrUnexpectedEOF within it; a [*objects.DecodeError]; the connection's.
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

// expect reads one of the characters, and returns which.
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
