package wire

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

	"github.com/flyball-dev/flyball/informer/internal/lean"
	"github.com/flyball-dev/flyball/informer/objects"
)

// Decoder makes objects of what the server sent. The encoding is told from the bytes themselves: protobuf begins
// with a magic number (a list) or a length (a frame of a watch), neither of which begins JSON.
type Decoder[T objects.Object] struct {
	// New returns an empty object.
	New func() T
	// Kind is the kind expected; "" expects nothing.
	Kind string
	GVK  schema.GroupVersionKind
	Form Form
	// Lean decodes into little memory; nil leaves all to the standard decoders. See listwatch.RESTOptions.
	Lean *lean.Decoder
}

// Options are the caller's wishes; see listwatch.ListOptions.
type Options struct {
	Held      func(objects.State) bool
	Exclusive bool
}

// Form is how much of the objects the decoder keeps.
type Form int

const (
	Typed        Form = iota // A Go type; its TypeMeta is left empty, as everywhere in typed clients.
	Unstructured             // A tree of maps.
	Metadata                 // Metadata only; TypeMeta is that of the resource.
)

// unmarshaler is a type that protobuf can be decoded into.
type unmarshaler interface{ Unmarshal([]byte) error }

// listBuffer and watchBuffer are how much of a body is read at once.
const (
	listBuffer  = 64 << 10
	watchBuffer = 4 << 10
)

// listReaders are *bufio.Reader that are between two lists.
var listReaders = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, listBuffer) }}

// List decodes one page of a list as it comes in. each is given every object, or why it could not be decoded.
func (d *Decoder[T]) List(body io.Reader, o Options, each func(T, error) error) (metav1.ListMeta, error) {
	in := listReaders.Get().(*bufio.Reader)
	in.Reset(body)
	defer func() {
		in.Reset(nil)
		listReaders.Put(in)
	}()
	if start, _ := in.Peek(len(protobufMagic)); !bytes.Equal(start, protobufMagic) {
		return d.listJSON(in, o, each) // It meets the error that Peek met.
	}
	return d.listProtobuf(in, o, each)
}

// errNoList says that an answer does not even look like a list.
var errNoList = &objects.DecodeError{What: "list", Err: errors.New("it has neither items nor the kind of a list")}

// Status makes an error of what came with an ERROR event.
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

// State reads which state of which object an event is of; the zero State if it is not of the expected kind.
func (d *Decoder[T]) State(f Frame) (s objects.State) {
	if !bytes.HasPrefix(f.Object, protobufMagic) {
		return stateJSON(f.json)
	}
	if e, err := openEnvelope(f.Object); err == nil && d.expect(e.kind) == nil {
		return stateProtobuf(e.raw)
	}
	return s
}

// Object decodes one object that says its kind: that of a watch event.
func (d *Decoder[T]) Object(f Frame, o Options) (obj T, err error) {
	if !bytes.HasPrefix(f.Object, protobufMagic) {
		return d.objectJSON(f.json, o)
	}
	e, err := openEnvelope(f.Object)
	if err != nil {
		return obj, &objects.DecodeError{What: "watch event", Err: err}
	}
	if err := d.expect(e.kind); err != nil {
		return obj, err
	}
	return d.objectProtobuf(e.raw, o)
}

// expect reports whether an object of that kind is what was asked for. "" says nothing about itself and is believed.
func (d *Decoder[T]) expect(kind string) error {
	switch {
	case kind == "" || kind == d.Kind:
		return nil
	case d.Form == Metadata && kind == "PartialObjectMetadata":
		return nil
	case d.Kind == "" && kind != "Table" && kind != "Status":
		return nil
	}
	return &objects.DecodeError{What: "object", Err: fmt.Errorf("the server sent a %s, expected a %s", kind, d.Kind)}
}

// Check refuses an object that the cache could not keep, and gives the others the kind they should say.
func (d *Decoder[T]) Check(obj T) error {
	if obj.GetName() == "" {
		return &objects.DecodeError{What: "object", Err: errors.New("it has no name")}
	}
	switch d.Form {
	case Typed:
		obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{})
	case Metadata:
		obj.GetObjectKind().SetGroupVersionKind(d.GVK)
	case Unstructured:
		if obj.GetObjectKind().GroupVersionKind().Kind == "" {
			obj.GetObjectKind().SetGroupVersionKind(d.GVK)
		}
	}
	return nil
}

// objectJSON decodes one object.
func (d *Decoder[T]) objectJSON(v lean.Value, o Options) (T, error) {
	obj := d.New()
	var into any = obj
	u, tree := any(obj).(*unstructured.Unstructured)
	switch {
	case tree && d.Lean != nil:
		var err error
		if u.Object, err = d.Lean.Tree(v, !o.Exclusive); err == nil {
			return obj, d.expect(obj.GetObjectKind().GroupVersionKind().Kind)
		}
	case d.Lean != nil:
		v.DropManagedFields()
	}
	if tree {
		u.Object = map[string]any{}
		into = &u.Object // Its own UnmarshalJSON refuses what does not say its kind, as the items of a list may not.
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(v.Bytes(), into); err != nil {
		return obj, unreadable(metadataJSON(v.Bytes()), err)
	}
	if tree && d.Lean != nil {
		unstructured.RemoveNestedField(u.Object, "metadata", "managedFields")
	}
	return obj, d.expect(obj.GetObjectKind().GroupVersionKind().Kind)
}

// unreadable is the error of an object of which m is all that could be read.
func unreadable(m metav1.ObjectMeta, err error) *objects.DecodeError {
	e := &objects.DecodeError{What: "object", Err: err}
	if m.Name != "" {
		e.Key, e.UID, e.Version = objects.KeyOf(m.Namespace, m.Name), m.UID, m.ResourceVersion
		e.What += " " + e.Key
	}
	return e
}

// metadataJSON reads what names an object that could not be decoded; empty when not even that can be read.
func metadataJSON(data []byte) (m metav1.ObjectMeta) {
	var partial struct {
		Metadata struct {
			Namespace       string    `json:"namespace"`
			Name            string    `json:"name"`
			UID             types.UID `json:"uid"`
			ResourceVersion string    `json:"resourceVersion"`
		} `json:"metadata"`
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &partial); err != nil {
		return m
	}
	p := partial.Metadata
	m.Namespace, m.Name, m.UID, m.ResourceVersion = p.Namespace, p.Name, p.UID, p.ResourceVersion
	return m
}

// AnswerKind is what a request for metadata only is to be answered with: the server tells lists from single objects.
type AnswerKind string

// The answers that can be asked for.
const (
	AnswerList    AnswerKind = "PartialObjectMetadataList"
	AnswerObjects AnswerKind = "PartialObjectMetadata"
)

// Accept is the Accept header: what the answer may come as, the best first.
func (d *Decoder[T]) Accept(kind AnswerKind) string {
	switch d.Form {
	case Unstructured:
		return JSONMedia
	case Metadata:
		as := ";as=" + string(kind) + ";g=meta.k8s.io;v=v1"
		return strings.Join([]string{protobufMedia + as, JSONMedia + as, JSONMedia}, ",")
	}
	if _, ok := any(d.New()).(unmarshaler); ok {
		return protobufMedia + "," + JSONMedia
	}
	return JSONMedia
}

// JSONMedia and protobufMedia are the media types that are decoded.
const (
	JSONMedia     = "application/json"
	protobufMedia = "application/vnd.kubernetes.protobuf"
)
