package admission

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/manager/webhook/internal/panics"
)

// Handler decides about requests.
//
// Concurrency: Handle is called by several goroutines at once. It must return when ctx ends.
type Handler interface {
	Handle(ctx context.Context, r Request) Response
}

// HandlerFunc is a function that is a [Handler].
type HandlerFunc func(ctx context.Context, r Request) Response

// Handle implements [Handler].
func (f HandlerFunc) Handle(ctx context.Context, r Request) Response { return f(ctx, r) }

// Webhook serves a [Handler] over HTTP; register it with the server of the manager.
type Webhook struct {
	Handler Handler
	// WithContextFunc returns the context for a request, for example with the value of a header. The context must be
	// derived from the given one. Nil leaves the context as it is.
	WithContextFunc func(ctx context.Context, r *http.Request) context.Context
	// LogConstructor returns the logger in the context of a request; base has the values of the server. Nil means
	// [DefaultLogConstructor]. req is never nil.
	LogConstructor func(base klog.Logger, req *Request) klog.Logger
}

// DefaultLogConstructor adds to base what the request is about: its UID, operation, resource, object and user.
func DefaultLogConstructor(base klog.Logger, req *Request) klog.Logger {
	return base.WithValues("requestID", req.UID, "operation", req.Operation,
		"resource", req.Resource.Resource, "object", klog.KRef(req.Namespace, req.Name), "user", req.UserInfo.Username)
}

// Handle passes the request to the Handler, with a context that carries the request and a logger. A panic becomes a
// response with code 500.
func (w *Webhook) Handle(ctx context.Context, r Request) (response Response) {
	newLog := w.LogConstructor
	if newLog == nil {
		newLog = DefaultLogConstructor
	}
	log := newLog(klog.FromContext(ctx), &r)
	ctx = NewContextWithRequest(klog.NewContext(ctx, log), r)
	defer func() {
		if v := recover(); v != nil {
			response = Errored(http.StatusInternalServerError, panics.Recovered(ctx, v))
			_ = response.Complete(r) // cannot fail without a patch
		}
	}()
	if w.Handler == nil {
		response = Errored(http.StatusInternalServerError, errors.New("there is no handler: set Webhook.Handler"))
	} else {
		response = w.Handler.Handle(ctx, r)
	}
	if err := response.Complete(r); err != nil {
		log.Error(err, "Webhook cannot answer")
		response = Errored(http.StatusInternalServerError, err)
		_ = response.Complete(r)
	}
	return response
}

// Decoder decodes the objects of requests into Go types.
type Decoder struct {
	codecs serializer.CodecFactory
}

// NewDecoder returns a decoder of the types in the scheme.
func NewDecoder(scheme *runtime.Scheme) Decoder { return Decoder{serializer.NewCodecFactory(scheme)} }

// Decode decodes the object of the request, of CREATE and UPDATE.
//
// Errors: there is no object; it is of another kind or version than into.
func (d Decoder) Decode(r Request, into runtime.Object) error { return d.DecodeRaw(r.Object, into) }

// DecodeRaw decodes an object of a request, such as Request.OldObject. For errors, see Decode.
func (d Decoder) DecodeRaw(raw runtime.RawExtension, into runtime.Object) error {
	if len(raw.Raw) == 0 {
		return fmt.Errorf("decode %T: the request has no such object", into)
	}
	if u, ok := into.(runtime.Unstructured); ok {
		content := map[string]any{}
		if err := json.Unmarshal(raw.Raw, &content); err != nil {
			return fmt.Errorf("decode %T: %w", into, err)
		}
		u.SetUnstructuredContent(content)
		return nil
	}
	if err := runtime.DecodeInto(d.codecs.UniversalDeserializer(), raw.Raw, into); err != nil {
		return fmt.Errorf("decode %T: %w", into, err)
	}
	return nil
}

// empty returns a function that makes empty objects like the example, of its dynamic type.
func empty(example runtime.Object) func() runtime.Object {
	if u, ok := example.(*unstructured.Unstructured); ok {
		kind := u.GroupVersionKind()
		return func() runtime.Object { return newUnstructured(kind) }
	}
	of := reflect.TypeOf(example).Elem()
	return func() runtime.Object { return reflect.New(of).Interface().(runtime.Object) }
}

func newUnstructured(kind schema.GroupVersionKind) *unstructured.Unstructured {
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(kind)
	return u
}

// exampleOf returns an empty T, which must be a pointer type.
func exampleOf[T runtime.Object]() runtime.Object {
	of := reflect.TypeFor[T]()
	if of.Kind() != reflect.Pointer {
		panic(fmt.Sprintf("admission: %v is not a pointer to a Go type of the API, like *corev1.Pod", of))
	}
	return reflect.New(of.Elem()).Interface().(runtime.Object)
}
