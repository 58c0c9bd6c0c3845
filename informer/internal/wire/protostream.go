package wire

import (
	"bufio"
	"errors"
	"fmt"
	"io"
)

// protoStream reads the fields of a message while it arrives. It holds one field at a time.
//
// Errors of all methods: errTruncated if the message or the body ends too early; a brokenError if the connection broke.
// content also rejects unknown wire types, and wanted fields of more than maxFrame bytes.
type protoStream struct {
	in *bufio.Reader
	// left is the number of unread bytes of the message; negative if the message ends where the body ends.
	left int64
	buf  []byte
}

// content reads the content of a field. If the field is length-delimited and wanted is true, it returns the content. It
// skips all other fields. The bytes are valid until the next call.
func (s *protoStream) content(wire uint8, wanted bool) ([]byte, error) {
	switch wire {
	case 0:
		_, err := s.number()
		return nil, err
	case 1:
		return nil, s.skip(8)
	case 5:
		return nil, s.skip(4)
	case 2:
		size, err := s.length()
		if err != nil {
			return nil, err
		}
		if wanted {
			return s.bytes(size)
		}
		return nil, s.skip(size)
	}
	return nil, fmt.Errorf("protobuf wire type %d", wire)
}

// tag reads the tag of a field. Number 0 means the end of the message.
func (s *protoStream) tag() (number uint64, wire uint8, err error) {
	if s.left == 0 {
		return 0, 0, nil
	}
	if s.left < 0 {
		if _, err := s.in.Peek(1); errors.Is(err, io.EOF) {
			return 0, 0, nil
		}
	}
	tag, err := s.number()
	return tag >> 3, uint8(tag & 7), err
}

// number reads a varint.
func (s *protoStream) number() (uint64, error) {
	var value uint64
	for shift := uint(0); shift < 64; shift += 7 {
		if s.left == 0 {
			return 0, errTruncated
		}
		c, err := s.in.ReadByte()
		if err != nil {
			return 0, truncated(err)
		}
		s.left = max(s.left-1, -1)
		value |= uint64(c&0x7f) << shift
		if c < 0x80 {
			return value, nil
		}
	}
	return 0, errTruncated
}

// length reads the length of a field.
func (s *protoStream) length() (int64, error) {
	size, err := s.number()
	if err == nil && (size > 1<<62 || (s.left >= 0 && int64(size) > s.left)) {
		err = errTruncated
	}
	return int64(size), err
}

func (s *protoStream) skip(size int64) error {
	if s.left >= 0 {
		if size > s.left {
			return errTruncated
		}
		s.left -= size
	}
	_, err := io.CopyN(io.Discard, s.in, size)
	return truncated(err)
}

// bytes reads size bytes. The buffer grows as they arrive, so a wrong length does not make it allocate too much.
func (s *protoStream) bytes(size int64) ([]byte, error) {
	if size > maxFrame {
		return nil, errLarge
	}
	if cap(s.buf) > keptFrame && size <= keptFrame {
		s.buf = nil
	}
	if s.left >= 0 {
		s.left -= size
	}
	s.buf = s.buf[:0]
	for int64(len(s.buf)) < size {
		if len(s.buf) == cap(s.buf) {
			grown := make([]byte, len(s.buf), max(int64(len(s.buf)), min(size, keptFrame))+int64(len(s.buf)))
			copy(grown, s.buf)
			s.buf = grown
		}
		n, err := s.in.Read(s.buf[len(s.buf):min(int64(cap(s.buf)), size)])
		s.buf = s.buf[:len(s.buf)+n]
		if err != nil && int64(len(s.buf)) < size {
			return nil, truncated(err)
		}
	}
	return s.buf, nil
}

// truncated returns errTruncated for the end of the body, and a brokenError for all other errors.
func truncated(err error) error {
	switch {
	case err == nil:
		return nil
	case err == io.EOF: //nolint:errorlint // Readers return it unwrapped; wrapped, it comes from the connection.
		return errTruncated
	}
	return &brokenError{err}
}

// brokenError is an error of the connection, not of its content.
type brokenError struct{ error }

// into enters the message in the field whose tag was just read: the next reads return its fields. back leaves it again.
func (s *protoStream) into() (back func(), err error) {
	size, err := s.length()
	if err != nil {
		return nil, err
	}
	outer := s.left
	if outer >= 0 {
		outer -= size
	}
	s.left = size
	return func() { s.left = outer }, nil
}

func (s *protoStream) magic() error {
	_, err := s.in.Discard(len(protobufMagic))
	return truncated(err)
}
