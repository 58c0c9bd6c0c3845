package client

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	kjson "sigs.k8s.io/json"

	"github.com/flyball-dev/flyball/internal/ownwrites"
)

const (
	jsonMedia     = runtime.ContentTypeJSON
	protobufMedia = runtime.ContentTypeProtobuf
)

// message is a Go type that Kubernetes generates a protobuf codec for.
type message interface {
	Marshal() ([]byte, error)
	Unmarshal([]byte) error
}

// hasProtobuf reports whether servers know obj's Go type as protobuf: those of client-go's scheme. A type of a
// custom resource may have the methods, too, if it embeds one of those.
func hasProtobuf(obj runtime.Object) bool {
	if _, is := obj.(message); !is {
		return false
	}
	_, _, err := clientscheme.Scheme.ObjectKinds(obj)
	return err == nil
}

// encode returns obj as JSON or, if asked for and known, as protobuf. It says its kind even where the Go value does
// not.
func encode(obj runtime.Object, gvk schema.GroupVersionKind, protobuf bool) (data []byte, media string, err error) {
	if protobuf && hasProtobuf(obj) {
		data, err = encodeProtobuf(obj.(message), gvk)
		media = protobufMedia
	} else {
		data, err = encodeJSON(obj, gvk)
		media = jsonMedia
	}
	if err != nil {
		return nil, "", fmt.Errorf("encode %s: %w", gvk.Kind, err)
	}
	return data, media, nil
}

// encodeProtobuf puts the envelope of Kubernetes around obj. The codecs of apimachinery would write the kind into
// obj for a moment, which others may read.
func encodeProtobuf(obj message, gvk schema.GroupVersionKind) ([]byte, error) {
	raw, err := obj.Marshal()
	if err != nil {
		return nil, err
	}
	envelope := runtime.Unknown{
		TypeMeta: runtime.TypeMeta{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind},
		Raw:      raw,
	}
	data := make([]byte, len(ownwrites.ProtobufPrefix)+envelope.Size())
	copy(data, ownwrites.ProtobufPrefix)
	_, err = envelope.MarshalTo(data[len(ownwrites.ProtobufPrefix):])
	return data, err
}

func encodeJSON(obj runtime.Object, gvk schema.GroupVersionKind) ([]byte, error) {
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	if !obj.GetObjectKind().GroupVersionKind().Empty() || len(data) < 2 || data[0] != '{' {
		return data, nil
	}
	head, err := json.Marshal(metav1.TypeMeta{APIVersion: gvk.GroupVersion().String(), Kind: gvk.Kind})
	if err != nil {
		return nil, err
	}
	if string(data) == "{}" {
		return head, nil
	}
	return append(append(head[:len(head)-1], ','), data[1:]...), nil
}

// decode reads JSON into a new Go value; integers stay integers.
func decode(data []byte, into any) error {
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, into); err != nil {
		return fmt.Errorf("decode the server's answer: %w", err)
	}
	return nil
}

// decodeInto reads an object or a list into a new Go value.
func decodeInto(contentType string, data []byte, into runtime.Object) error {
	if !ownwrites.IsProtobuf(contentType) {
		return decode(data, into)
	}
	raw, _, _ := ownwrites.OpenProtobuf(data)
	if m, is := into.(message); is {
		if err := m.Unmarshal(raw); err != nil {
			return fmt.Errorf("decode the server's answer: %w", err)
		}
		return nil
	}
	typed, _, err := clientscheme.Codecs.UniversalDeserializer().Decode(data, nil, nil)
	if err != nil {
		return fmt.Errorf("decode the server's answer: %w", err)
	}
	if data, err = json.Marshal(typed); err != nil {
		return fmt.Errorf("decode the server's answer: %w", err)
	}
	return decode(data, into)
}

// decode returns the object in an answer.
//
// Errors: errOtherKind.
func (k kind) decode(scheme *runtime.Scheme, contentType string, data []byte) (Object, error) {
	obj, err := k.make(scheme)
	if err != nil {
		return nil, err
	}
	if err := decodeInto(contentType, data, obj); err != nil {
		return nil, err
	}
	if answered := obj.GetObjectKind().GroupVersionKind().Kind; answered != k.gvk.Kind &&
		answered != "PartialObjectMetadata" {
		return nil, errOtherKind
	}
	obj.GetObjectKind().SetGroupVersionKind(k.gvk)
	return obj, nil
}

// errOtherKind: the answer is an object of another kind, as that of a subresource may be.
var errOtherKind = errors.New("the server answered with another kind")

// reply is the answer to a request for obj. It is decoded once: by the record of own writes, while it comes in, or
// else for the caller.
type reply struct {
	scheme  *runtime.Scheme
	obj     Object
	decoded Object
}

// read implements Decode of [ownwrites.Intent].
func (r *reply) read(contentType string, data []byte) (ownwrites.Answer, bool) {
	k, err := kindOf(r.scheme, r.obj)
	if err == nil && ownwrites.IsProtobuf(contentType) {
		if _, _, answered := ownwrites.OpenProtobuf(data); answered != k.gvk.Kind {
			err = errOtherKind
		}
	}
	if err == nil {
		r.decoded, err = k.decode(r.scheme, contentType, data)
	}
	if err != nil {
		return ownwrites.Answer{}, false
	}
	return ownwrites.AnswerOf(k.gvk, r.decoded, contentType), true
}

// give makes the caller's object the answer, unless that is of another kind: as of a subresource that answers with
// a Status.
func (r *reply) give(contentType string, data []byte) error {
	if r.decoded == nil {
		k, err := kindOf(r.scheme, r.obj)
		if err != nil || ownwrites.KindOf(contentType, data) != k.gvk.Kind {
			return err
		}
		if r.decoded, err = k.decode(r.scheme, contentType, data); err != nil {
			return err
		}
	}
	set(r.obj, r.decoded)
	return nil
}

// set makes dst be src. Both are pointers to the same type.
func set(dst, src runtime.Object) { reflect.ValueOf(dst).Elem().Set(reflect.ValueOf(src).Elem()) }
