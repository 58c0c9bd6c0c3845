package kinds

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	kjson "sigs.k8s.io/json"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/wire"
)

// The content types of the API.
const (
	JSON     = runtime.ContentTypeJSON
	Protobuf = runtime.ContentTypeProtobuf
)

// message is implemented by the Go types for which Kubernetes generates a protobuf codec.
type message interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// Accept returns the Accept header of a request whose answer is decoded into obj. It asks for protobuf only where the
// caller wants protobuf and obj is of a built-in kind.
func Accept(obj runtime.Object, protobuf bool) string {
	if protobuf && hasProtobuf(obj) {
		return Protobuf + "," + JSON
	}
	return JSON
}

// hasProtobuf reports whether obj is of a type of k8s.io/api, which servers know in protobuf. The methods are not
// enough: the type of a custom resource may have them, too, for example from an embedded built-in type.
func hasProtobuf(obj runtime.Object) bool {
	if _, is := obj.(message); !is {
		return false
	}
	t := reflect.TypeOf(obj)
	return t.Kind() == reflect.Pointer && strings.HasPrefix(t.Elem().PkgPath(), "k8s.io/api/")
}

// encodesAsProtobuf reports whether obj can be sent in protobuf as the given kind. A type with a raw extension cannot:
// the codec leaves out an embedded object that is not encoded yet.
func encodesAsProtobuf(obj runtime.Object, gvk schema.GroupVersionKind) bool {
	if !hasProtobuf(obj) || holdsRawExtension(reflect.TypeOf(obj).Elem()) {
		return false
	}
	known, _, err := clientscheme.Scheme.ObjectKinds(obj)
	return err == nil && slices.Contains(known, gvk)
}

// rawExtensions has the results of holdsRawExtension.
var rawExtensions sync.Map // of reflect.Type to bool

// holdsRawExtension reports whether values of the type t can contain a [runtime.RawExtension].
func holdsRawExtension(t reflect.Type) bool {
	if known, found := rawExtensions.Load(t); found {
		return known.(bool)
	}
	holds := searchRawExtension(t, map[reflect.Type]bool{})
	rawExtensions.Store(t, holds)
	return holds
}

func searchRawExtension(t reflect.Type, seen map[reflect.Type]bool) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map:
		return searchRawExtension(t.Elem(), seen)
	case reflect.Struct:
		if t == reflect.TypeFor[runtime.RawExtension]() {
			return true
		}
		if seen[t] {
			return false
		}
		seen[t] = true
		for i := range t.NumField() {
			if searchRawExtension(t.Field(i).Type, seen) {
				return true
			}
		}
	}
	return false
}

// Encode returns obj in JSON or, if the caller wants it and the type allows it, in protobuf. The result has the kind
// gvk, whatever kind obj has.
func Encode(obj runtime.Object, gvk schema.GroupVersionKind, protobuf bool) (data []byte, media string, err error) {
	if protobuf && encodesAsProtobuf(obj, gvk) {
		data, err = encodeProtobuf(obj.(message), gvk)
		media = Protobuf
	} else {
		data, err = encodeJSON(obj, gvk)
		media = JSON
	}
	if err != nil {
		return nil, "", fmt.Errorf("encode %s: %w", gvk.Kind, err)
	}
	return data, media, nil
}

// encodeProtobuf returns obj in the protobuf envelope of Kubernetes. The codecs of apimachinery write the kind into obj
// for a moment, which is a race with other readers of obj.
func encodeProtobuf(obj message, gvk schema.GroupVersionKind) ([]byte, error) {
	raw, err := obj.Marshal()
	if err != nil {
		return nil, err
	}
	envelope := runtime.Unknown{
		TypeMeta: runtime.TypeMeta{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind},
		Raw:      raw,
	}
	data := make([]byte, len(wire.ProtobufPrefix)+envelope.Size())
	copy(data, wire.ProtobufPrefix)
	_, err = envelope.MarshalTo(data[len(wire.ProtobufPrefix):])
	return data, err
}

// encodeJSON returns the JSON of obj with the kind gvk. It does not change obj, which others may read.
func encodeJSON(obj runtime.Object, gvk schema.GroupVersionKind) ([]byte, error) {
	if obj.GetObjectKind().GroupVersionKind() != gvk {
		obj = obj.DeepCopyObject()
		obj.GetObjectKind().SetGroupVersionKind(gvk)
	}
	return json.Marshal(obj)
}

// DecodeJSON decodes JSON into a new Go value. Integers stay integers.
func DecodeJSON(data []byte, into any) error {
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, into); err != nil {
		return fmt.Errorf("decode response: %w", err)
	}
	return nil
}

// Decode decodes an object or a list into a new Go value. It also decodes protobuf into types without a protobuf codec.
func Decode(contentType string, data []byte, into runtime.Object) error {
	if !wire.IsProtobuf(contentType) {
		return DecodeJSON(data, into)
	}
	raw, apiVersion, kind := wire.OpenProtobuf(data)
	if raw == nil {
		return errors.New("decode response: it is not an object in protobuf, although the server says so")
	}
	if m, is := into.(message); is {
		if err := m.Unmarshal(raw); err != nil {
			return fmt.Errorf("decode response: %w", err)
		}
		into.GetObjectKind().SetGroupVersionKind(schema.FromAPIVersionAndKind(apiVersion, kind))
		return nil
	}
	typed, _, err := clientscheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
	if err != nil {
		return fmt.Errorf("decode response: %w", err)
	}
	if data, err = json.Marshal(typed); err != nil {
		return fmt.Errorf("decode response: %w", err)
	}
	return DecodeJSON(data, into)
}

// Decode returns the object in an answer.
//
// Errors: [ErrOtherKind], because a subresource may answer with another kind.
func (k Kind) Decode(scheme *runtime.Scheme, contentType string, data []byte) (informer.Object, error) {
	obj, err := k.New(scheme)
	if err != nil {
		return nil, err
	}
	obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{}) // An answer without a kind is no object.
	if err := Decode(contentType, data, obj); err != nil {
		return nil, err
	}
	if answered := obj.GetObjectKind().GroupVersionKind().Kind; answered != k.GVK.Kind &&
		answered != "PartialObjectMetadata" {
		return nil, ErrOtherKind
	}
	obj.GetObjectKind().SetGroupVersionKind(k.GVK)
	return obj, nil
}

// ErrOtherKind is the error of an answer whose object is not of the expected kind.
var ErrOtherKind = errors.New("the server answered with another kind")
