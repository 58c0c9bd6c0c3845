package live

import (
	"encoding/json"
	"reflect"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/client/internal/kinds"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/ownwrites/wire"
)

// Reply is the answer to a request for one object. It is decoded once: by the record of own writes, while it comes in,
// or else for the caller.
type Reply struct {
	server  *Server
	kind    kinds.Kind
	obj     informer.Object
	decoded informer.Object
}

// ReplyTo returns the reply that is to become obj.
func (s *Server) ReplyTo(obj informer.Object) (*Reply, error) {
	k, err := kinds.Of(s.Scheme, obj)
	return &Reply{server: s, kind: k, obj: obj}, err
}

// Read implements Decode of [ownwrites.Intent].
func (r *Reply) Read(contentType string, data []byte) (wire.Answer, bool) {
	if wire.IsProtobuf(contentType) {
		if _, _, answered := wire.OpenProtobuf(data); answered != r.kind.GVK.Kind {
			return wire.Answer{}, false
		}
	}
	decoded, err := r.kind.Decode(r.server.Scheme, contentType, data)
	if err != nil {
		return wire.Answer{}, false
	}
	r.decoded = decoded
	return wire.AnswerOf(r.kind.GVK, decoded, contentType), true
}

// Give makes the caller's object the answer, unless that is of another kind: as of a subresource that answers with
// a Status.
func (r *Reply) Give(contentType string, data []byte) error {
	if r.decoded == nil {
		if wire.Identify(contentType, data).Kind != r.kind.GVK.Kind {
			return nil
		}
		var err error
		if r.decoded, err = r.kind.Decode(r.server.Scheme, contentType, data); err != nil {
			return err
		}
	}
	kinds.Set(r.obj, r.decoded)
	return nil
}

// GiveApplied makes an apply configuration what the server answered.
func GiveApplied(data []byte, obj runtime.ApplyConfiguration) error {
	if u, is := obj.(json.Unmarshaler); is { // Unstructured: the caller's own object is changed.
		return kinds.DecodeJSON(data, u)
	}
	fresh := reflect.New(reflect.TypeOf(obj).Elem())
	if err := kinds.DecodeJSON(data, fresh.Interface()); err != nil {
		return err
	}
	reflect.ValueOf(obj).Elem().Set(fresh.Elem())
	return nil
}
