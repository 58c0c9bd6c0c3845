package handlers

import (
	"bytes"
	"fmt"
	"io"

	"github.com/flyball-dev/flyball/localapi/internal/codec"
	"github.com/flyball-dev/flyball/localapi/internal/watchcache"
)

// chunkSize is how much of a list is encoded ahead of its reader.
const chunkSize = 32 << 10

// listReader encodes a list while it is read. The bytes of a long list take about as much memory as its objects, so the
// server never holds all of them.
//
// Errors: those of encoding an item.
type listReader struct {
	objects []*watchcache.Object // to encode

	// item appends an object to chunk, as an item of the list. last means that no item follows.
	item  func(chunk []byte, o *watchcache.Object, last bool) ([]byte, error)
	tail  []byte // what follows the items
	chunk []byte // encoded, and not read yet from position read on
	read  int
	err   error // of Read, when chunk has been read
}

// Read implements [io.Reader].
func (l *listReader) Read(p []byte) (int, error) {
	if l.read == len(l.chunk) && l.err == nil {
		l.fill()
	}
	n := copy(p, l.chunk[l.read:])
	if l.read += n; l.read == len(l.chunk) {
		return n, l.err
	}
	return n, nil
}

// fill encodes the next chunk.
func (l *listReader) fill() {
	l.chunk, l.read = l.chunk[:0], 0
	for len(l.chunk) < chunkSize && len(l.objects) > 0 && l.err == nil {
		l.chunk, l.err = l.item(l.chunk, l.objects[0], len(l.objects) == 1)
		l.objects = l.objects[1:]
	}
	if len(l.objects) == 0 && l.err == nil {
		l.chunk, l.err = append(l.chunk, l.tail...), io.EOF
	}
}

// listBody returns a list in the format of the answer, which is JSON or protobuf.
func (x *exchange) listBody(list *pendingList) (body, error) {
	if x.out.Format == codec.Protobuf {
		return x.protobufList(list)
	}
	return x.jsonList(list)
}

func (x *exchange) protobufList(list *pendingList) (body, error) {
	d := x.res.Definition
	envelope := codec.NewEnvelope(d.GroupVersionKind())
	size := 0
	for _, o := range list.objects {
		m, err := x.message(envelope, o)
		if err != nil {
			return body{}, err
		}
		size += m.ItemSize()
	}
	head, size := codec.NewEnvelope(d.ListGroupVersionKind()).AppendList(nil, &list.ListMeta, size)
	item := func(chunk []byte, o *watchcache.Object, _ bool) ([]byte, error) {
		m, err := x.message(envelope, o)
		if err != nil {
			return chunk, err
		}
		return m.AppendItem(chunk), nil
	}
	return body{size: int64(size), Reader: &listReader{
		objects: list.objects, item: item, chunk: head, tail: []byte(codec.EnvelopeEnd),
	}}, nil
}

// message returns the protobuf message of a stored object.
func (x *exchange) message(e codec.Envelope, o *watchcache.Object) (codec.Message, error) {
	if m, ok := e.Stamp(o.Value, o.Revision); ok {
		return m, nil
	}
	// A list asks twice, for its size and for its reader. The encoding is not kept: nobody would drop it.
	encoded, err := o.EncodedOnce(watchcache.Protobuf, x.encodeObject)
	if err != nil {
		return codec.Message{}, err
	}
	m, ok := e.Open(encoded)
	if !ok {
		return m, fmt.Errorf("%s is not a %s", o.Key, x.res.Definition.Kind)
	}
	return m, nil
}

// jsonList returns a body whose size is not known: it would take encoding all items.
func (x *exchange) jsonList(list *pendingList) (body, error) {
	d := x.res.Definition
	empty, err := x.api.Codec.Encode(listObject(x.res, nil, list.ListMeta), codec.JSON, false)
	if err != nil {
		return body{}, err
	}
	head, tail, ok := bytes.Cut(empty, []byte(`"items":[]`))
	if !ok {
		return body{}, fmt.Errorf("a %s has no items", d.ListGroupVersionKind().Kind)
	}
	begin := "{"
	if !x.res.Unstructured { // the items of a typed list have no kind of their own
		apiVersion, kind := d.GroupVersionKind().ToAPIVersionAndKind()
		begin = fmt.Sprintf(`{"kind":%q,"apiVersion":%q,`, kind, apiVersion)
	}
	item := func(chunk []byte, o *watchcache.Object, last bool) ([]byte, error) {
		encoded, err := o.EncodedOnce(watchcache.JSON, x.encodeObject)
		if err != nil {
			return chunk, err
		}
		fields, ok := bytes.CutPrefix(encoded, []byte(begin))
		if !ok {
			return chunk, fmt.Errorf("%s is not a %s", o.Key, d.Kind)
		}
		chunk = append(append(chunk, '{'), trimNewline(fields)...)
		if !last {
			chunk = append(chunk, ',')
		}
		return chunk, nil
	}
	return body{size: -1, Reader: &listReader{
		objects: list.objects, item: item,
		chunk: append(bytes.Clone(head), `"items":[`...), tail: append([]byte{']'}, tail...),
	}}, nil
}
