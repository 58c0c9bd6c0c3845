package wire

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	kjson "sigs.k8s.io/json"

	"github.com/flyball-dev/flyball/informer/internal/lean"
	"github.com/flyball-dev/flyball/informer/objects"
)

// Decoder decodes what the server sends. It recognises the encoding by the first bytes: a list in protobuf begins with
// a magic number, and a watch frame in protobuf with a length. JSON begins with neither.
type Decoder[T objects.Object] struct {
	// New returns an empty object.
	New func() T
	// Kind is the expected kind; "" means any.
	Kind string
	GVK  schema.GroupVersionKind
	Form Form
	// Lean decodes into less memory. nil means the standard decoders; see listwatch.RESTOptions.
	Lean *lean.Decoder
}

// Options are those of listwatch.ListOptions that concern the decoder.
type Options struct {
	Held      func(objects.State) bool
	Exclusive bool
}

// Form is the representation of the objects.
type Form int

const (
	Typed        Form = iota // A Go type; its TypeMeta is empty, as in all typed clients.
	Unstructured             // A tree of maps.
	Metadata                 // Metadata only; TypeMeta is that of the resource.
)

// unmarshaler is a type that can be decoded from protobuf.
type unmarshaler interface{ Unmarshal([]byte) error }

// Object decodes the object of a watch event.
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

func (d *Decoder[T]) objectProtobuf(data []byte, o Options) (T, error) {
	obj := d.New()
	if d.Lean != nil {
		if d.Lean.Unmarshal(data, obj, !o.Exclusive) == nil {
			return obj, nil
		}
		obj = d.New() // The standard decoder either succeeds or finds the error to report.
	}
	into, ok := any(obj).(unmarshaler)
	if !ok {
		return obj, &objects.DecodeError{
			What: "object",
			Err:  fmt.Errorf("the server sent protobuf, which a %T cannot hold", obj),
		}
	}
	if err := into.Unmarshal(data); err != nil {
		return obj, unreadable(metadataProtobuf(data), err)
	}
	if d.Lean != nil {
		obj.SetManagedFields(nil)
	}
	return obj, nil
}

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
		into = &u.Object // Its own UnmarshalJSON rejects objects without a kind, as items of a list can be.
	}
	if err := kjson.UnmarshalCaseSensitivePreserveInts(v.Bytes(), into); err != nil {
		return obj, unreadable(metadataJSON(v.Bytes()), err)
	}
	if tree && d.Lean != nil {
		unstructured.RemoveNestedField(u.Object, "metadata", "managedFields")
	}
	return obj, d.expect(obj.GetObjectKind().GroupVersionKind().Kind)
}

// expect returns an error if kind is not the expected one. An object without a kind is accepted.
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

// Check returns an error for an object that the cache cannot keep. Otherwise it sets or clears the kind in the object,
// as its form requires.
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

// unreadable returns the error for an object that could not be decoded. m is what could be read of its metadata.
func unreadable(m metav1.ObjectMeta, err error) *objects.DecodeError {
	e := &objects.DecodeError{What: "object", Err: err}
	if m.Name != "" {
		e.Key, e.UID, e.Version = objects.KeyOf(m.Namespace, m.Name), m.UID, m.ResourceVersion
		e.What += " " + e.Key
	}
	return e
}

// metadataProtobuf reads the metadata of an object that could not be decoded. It is field 1 of every object message.
func metadataProtobuf(data []byte) (m metav1.ObjectMeta) {
	first := true
	_ = fields(data, func(number uint64, content []byte) error {
		if first && number == 1 && m.Unmarshal(content) != nil {
			m = metav1.ObjectMeta{}
		}
		first = false
		return nil
	})
	return m
}

// metadataJSON reads the metadata that identifies an object which could not be decoded. It is empty if that fails, too.
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

// AnswerKind is the kind that a metadata-only request asks for. It is not the same for a list and for a single object.
type AnswerKind string

// The kinds of answers.
const (
	AnswerList    AnswerKind = "PartialObjectMetadataList"
	AnswerObjects AnswerKind = "PartialObjectMetadata"
)

// Accept returns the Accept header: the media types that the decoder understands, the best first.
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
