package informer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// listJSON decodes a page item by item, so that no array keeps the items of a page together in memory, and one that cannot be
// decoded can be named.
func (d *decoder[T]) listJSON(data []byte, yield func(T) error) (metav1.ListMeta, error) {
	var page struct {
		Kind     string            `json:"kind"`
		Metadata metav1.ListMeta   `json:"metadata"`
		Items    []json.RawMessage `json:"items"`
	}
	if err := json.Unmarshal(data, &page); err != nil {
		return page.Metadata, &DecodeError{What: "list", Err: err}
	}
	if err := d.expectList(page.Kind); err != nil {
		return page.Metadata, err
	}
	for i, item := range page.Items {
		obj, err := d.objectJSON(item)
		if err != nil {
			return page.Metadata, err
		}
		page.Items[i] = nil
		if err := d.check(obj); err != nil {
			return page.Metadata, err
		}
		if err := yield(obj); err != nil {
			return page.Metadata, err
		}
	}
	return page.Metadata, nil
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
