package watchcache

import (
	"context"
	"maps"
	"reflect"
	"strconv"
	"sync/atomic"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/localapi/internal/resource"
	"github.com/flyball-dev/flyball/localapi/storage"
)

// Object is one state of one object. It is decoded, has its resource version set, and is shared and read-only.
type Object struct {
	runtime.Object               // kind and apiVersion are set
	Meta           metav1.Object // the same object's metadata
	storage.Record               // where and how it is stored

	// encoded caches Object's encodings, so that an event is encoded once for all watchers.
	encoded [encodings]atomic.Pointer[[]byte]

	// conversion is nil if the object was never converted.
	conversion atomic.Pointer[Conversion]
}

// Encoding names one of the cached encodings of an object.
type Encoding int

// The encodings that are cached.
const (
	JSON Encoding = iota
	Protobuf
	encodings
)

// Encoded returns the object in the given encoding. The first call produces it with encode. The result is read-only.
func (o *Object) Encoded(e Encoding, encode func(runtime.Object) ([]byte, error)) ([]byte, error) {
	if b := o.encoded[e].Load(); b != nil {
		return *b, nil
	}
	b, err := encode(o.Object)
	if err != nil {
		return nil, err
	}
	o.encoded[e].Store(&b)
	return b, nil
}

// EncodedOnce is Encoded for a caller that needs the encoding only once. It does not keep what it produces.
func (o *Object) EncodedOnce(e Encoding, encode func(runtime.Object) ([]byte, error)) ([]byte, error) {
	if b := o.encoded[e].Load(); b != nil {
		return *b, nil
	}
	return encode(o.Object)
}

// forget drops the cached encodings.
func (o *Object) forget() {
	for i := range o.encoded {
		o.encoded[i].Store(nil)
	}
	if c := o.conversion.Load(); c != nil {
		c.forget()
	}
}

// newObject wraps decoded as the state stored in r. It does not change decoded.
func newObject(decoded runtime.Object, r storage.Record) *Object {
	obj := WithRevision(decoded, r.Revision)
	return &Object{Object: obj, Meta: resource.Meta(obj), Record: r}
}

// WithRevision returns a shallow copy of obj whose resource version is revision. The copy shares everything below the
// metadata with obj: both are read-only from here on.
func WithRevision(obj runtime.Object, revision int64) runtime.Object {
	clone := ShallowCopy(obj)
	resource.Meta(clone).SetResourceVersion(strconv.FormatInt(revision, 10))
	return clone
}

// ShallowCopy copies an object to the depth at which its type and metadata fields can be set without changing the
// original.
func ShallowCopy(obj runtime.Object) runtime.Object {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		content := maps.Clone(u.Object)
		if m, ok := u.Object["metadata"].(map[string]any); ok {
			content["metadata"] = maps.Clone(m)
		}
		return &unstructured.Unstructured{Object: content}
	}
	v := reflect.ValueOf(obj).Elem()
	clone := reflect.New(v.Type())
	clone.Elem().Set(v)
	return clone.Interface().(runtime.Object)
}

// Conversion is a state of an object in another version, which a webhook makes of it. All readers of the state share
// it, and it lives as long as the state: a collection has one version to convert to.
type Conversion struct {
	Of *Object

	// made is closed by Finish, after result was set. Readers wait for it. Nothing is sent.
	made   chan struct{}
	result *Object // nil: the conversion failed
}

// NewConversion returns a conversion that only the caller knows of, who must make it and call Finish.
func NewConversion(of *Object) *Conversion {
	return &Conversion{Of: of, made: make(chan struct{})}
}

// Conversion returns the conversion of the state. mine means that the caller is the first to ask, must make it, and
// must call Finish.
func (o *Object) Conversion() (c *Conversion, mine bool) {
	for {
		if c := o.conversion.Load(); c != nil {
			return c, false
		}
		if c := NewConversion(o); o.conversion.CompareAndSwap(nil, c) {
			return c, true
		}
	}
}

// Finish ends the conversion. If result is nil it has failed, and the next reader of the state makes another.
func (c *Conversion) Finish(result *Object) {
	c.result = result
	if result == nil {
		c.Of.conversion.CompareAndSwap(c, nil)
	} else {
		c.Of.conversion.CompareAndSwap(nil, c)
	}
	close(c.made)
}

// Wait returns the result, nil if the conversion failed. Errors: that of ctx.
func (c *Conversion) Wait(ctx context.Context) (*Object, error) {
	select {
	case <-c.made:
		return c.result, nil
	default:
	}
	select {
	case <-c.made:
		return c.result, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// forget drops the cached encodings of the result. The result stays: to make it again takes a remote call.
func (c *Conversion) forget() {
	select {
	case <-c.made:
		if c.result != nil {
			c.result.forget()
		}
	default:
	}
}
