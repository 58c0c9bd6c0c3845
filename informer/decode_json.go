package informer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// listJSON decodes a page item by item, as it comes in, so that nothing keeps the items of a page together in memory, and one
// that cannot be decoded can be named.
func (d *decoder[T]) listJSON(body io.Reader, each func(T, error) error) (m metav1.ListMeta, err error) {
	in := json.NewDecoder(body)
	if begun, err := open(in, '{'); !begun {
		return m, err
	}
	for in.More() {
		name, err := in.Token()
		if err != nil {
			return m, readFailed(err)
		}
		switch name {
		case "kind":
			var kind string
			if err = readFailed(in.Decode(&kind)); err == nil {
				err = d.expectList(kind)
			}
		case "metadata":
			err = readFailed(in.Decode(&m))
		case "items":
			err = d.itemsJSON(in, each)
		default:
			var ignored json.RawMessage
			err = readFailed(in.Decode(&ignored))
		}
		if err != nil {
			return m, err
		}
	}
	_, err = in.Token() // The closing brace.
	return m, readFailed(err)
}

// itemsJSON decodes the items of a page. Some servers send null for none.
func (d *decoder[T]) itemsJSON(in *json.Decoder, each func(T, error) error) error {
	if begun, err := open(in, '['); !begun {
		return err
	}
	var item json.RawMessage // One array for all: decoded objects do not refer to it.
	for in.More() {
		if err := in.Decode(&item); err != nil {
			return readFailed(err)
		}
		obj, err := d.objectJSON(item)
		if err == nil {
			err = d.check(obj)
		}
		if err := each(obj, err); err != nil {
			return err
		}
	}
	_, err := in.Token() // The closing bracket.
	return readFailed(err)
}

// open reads the delimiter that a value begins with; false without an error is a null.
func open(in *json.Decoder, delim json.Delim) (begun bool, err error) {
	switch t, err := in.Token(); {
	case err != nil:
		return false, readFailed(err)
	case t == nil && delim == '[':
		return false, nil
	case t != delim:
		return false, &DecodeError{What: "list", Err: fmt.Errorf("%v where %v was expected", t, delim)}
	}
	return true, nil
}

// readFailed tells a list that makes no sense from one that did not come to its end.
func readFailed(err error) error {
	var (
		syntax *json.SyntaxError
		typ    *json.UnmarshalTypeError
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &syntax), errors.As(err, &typ):
		return &DecodeError{What: "list", Err: err}
	case errors.Is(err, io.EOF):
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read the list: %w", err)
}

// expectList is expect for the kind of a list.
func (d *decoder[T]) expectList(kind string) error {
	item, isList := strings.CutSuffix(kind, "List")
	if !isList && kind != "" {
		return &DecodeError{What: "list", Err: fmt.Errorf("the server sent a %s", kind)}
	}
	if item == "" {
		return nil // "List" or nothing: says nothing about the items.
	}
	return d.expect(item)
}

// frame is one event of a watch, not decoded.
type frame struct {
	kind   string
	object []byte
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
	return &jsonFrames{in: json.NewDecoder(in)}
}

// jsonFrames reads JSON objects one after the other.
type jsonFrames struct{ in *json.Decoder }

func (r *jsonFrames) next() (frame, error) {
	var ev struct {
		Type   string          `json:"type"`
		Object json.RawMessage `json:"object"`
	}
	err := r.in.Decode(&ev)
	var (
		syntax *json.SyntaxError
		typ    *json.UnmarshalTypeError
	)
	if errors.As(err, &syntax) || errors.As(err, &typ) {
		return frame{}, &DecodeError{What: "watch event", Err: err}
	}
	return frame{kind: ev.Type, object: ev.Object}, err
}
