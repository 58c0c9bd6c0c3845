package wire

import (
	"bufio"
	"errors"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer/objects"
)

// listProtobuf decodes a page item by item, while it arrives.
func (d *Decoder[T]) listProtobuf(in *bufio.Reader, o Options,
	each func(T, error) error,
) (m metav1.ListMeta, err error) {
	s := &protoStream{in: in, left: -1}
	if err := s.magic(); err != nil {
		return m, badList(err)
	}
	for isList := false; ; { // The envelope has the TypeMeta in field 1, the list in field 2.
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

// messageList decodes the list message. Its metadata is in field 1, its items are in field 2.
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

// item decodes an item of a list, unless the caller holds its state already.
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

// badList returns the error of the connection if the connection broke, and a [*objects.DecodeError] otherwise, even if
// the body ended too early.
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
