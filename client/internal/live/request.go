package live

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client/internal/kinds"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/wire"
	"github.com/flyball-dev/flyball/writes"
)

// Request is a request about one object or, if Key has no name, about a collection. Empty fields are left out.
type Request struct {
	Verb string
	// GVK, Key and Subresource name the object.
	GVK         schema.GroupVersionKind
	Key         types.NamespacedName
	Subresource string

	Params              url.Values
	Accept, ContentType string
	Body                []byte
}

// Exchange sends r and replaces obj, which is of kind k, by the object in the answer. It leaves obj as it is if the
// answer is of another kind, such as the Status that answers an eviction.
func (s *Server) Exchange(ctx context.Context, r Request, k kinds.Kind, obj informer.Object) error {
	r.Accept = kinds.Accept(obj, s.Protobuf)
	// The record of own writes sees the answer first, in the transport. It calls Decode, which keeps the object here
	// too, so that the answer is decoded once.
	var decoded informer.Object
	intent := writes.Intent{
		Name: r.Key.Name, Kind: k.GVK,
		Decode: func(contentType string, data []byte) (_ metav1.Object, err error) {
			decoded, err = k.Decode(s.Scheme, contentType, data)
			return decoded, err
		},
	}
	contentType, data, err := s.Send(writes.WithIntent(ctx, &intent), r)
	if err != nil {
		return err
	}
	if decoded == nil && wire.Identify(contentType, data).Kind == k.GVK.Kind {
		if decoded, err = k.Decode(s.Scheme, contentType, data); err != nil {
			return err
		}
	}
	if decoded != nil {
		kinds.Set(obj, decoded)
	}
	return nil
}

// Send sends r and returns the body of a success and its content type. All requests of a client pass here. The
// transport below records the writes.
func (s *Server) Send(ctx context.Context, r Request) (contentType string, body []byte, err error) {
	resource, err := s.Mapper.Of(ctx, r.GVK)
	if err != nil {
		return "", nil, err
	}
	path, err := r.path(resource)
	if err != nil {
		return "", nil, err
	}
	if r.Verb != http.MethodGet && ctx.Err() != nil {
		return "", nil, context.Cause(ctx)
	}
	// The library must not retry: it would repeat a create that a failing server may have applied.
	request := s.REST.Verb(r.Verb).AbsPath(path).MaxRetries(0)
	if r.Accept != "" {
		request.SetHeader("Accept", r.Accept)
	}
	if r.ContentType != "" {
		request.SetHeader("Content-Type", r.ContentType)
	}
	if r.Body != nil {
		request.Body(r.Body)
	}
	for name, values := range r.Params {
		for _, value := range values {
			request.Param(name, value)
		}
	}
	contentType, body, err = do(ctx, request)
	return contentType, body, r.named(resource, err)
}

// name returns the name in the path. An object to create is named by the body alone.
func (r *Request) name() string {
	if r.Verb == http.MethodPost && r.Subresource == "" {
		return ""
	}
	return r.Key.Name
}

// path returns the path below the server's address. It is built once: the library would join it piece by piece, three
// times for each request.
//
// Errors: a missing namespace; a part that would change the path, with the error text of client-go.
func (r *Request) path(resource Resource) (string, error) {
	namespace, name := r.Key.Namespace, r.name()
	if resource.Namespaced && namespace == "" && r.Key.Name != "" {
		return "", fmt.Errorf("%s %s: %s are namespaced, and the namespace is empty", r.GVK.Kind, r.Key.Name,
			resource.Resource)
	}
	// A deletion of the objects of a namespace must not become a deletion of all objects. So the namespace stays in the
	// path, which the server refuses.
	if deletesAll := r.Verb == http.MethodDelete && name == ""; !resource.Namespaced && !deletesAll {
		namespace = ""
	}
	for _, part := range []struct{ what, value string }{
		{"namespace", namespace}, {"resource name", name}, {"subresource", r.Subresource},
	} {
		if wrong := rest.IsValidPathSegmentName(part.value); len(wrong) > 0 {
			return "", fmt.Errorf("invalid %s %q: %v", part.what, part.value, wrong)
		}
	}
	path := apiPath(resource.GroupVersion())
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	path += "/" + resource.Resource
	if name != "" {
		path += "/" + name
	}
	if r.Subresource != "" {
		path += "/" + r.Subresource
	}
	return path, nil
}

// maxThrottled is how often a request is repeated because the server is too busy. maxPause bounds the pause before a
// repetition, whatever the server asks for.
const (
	maxThrottled = 10
	maxPause     = 5 * time.Minute
)

// do sends a request and returns the body of a success and its content type. It repeats the request when the server is
// too busy (429), after the pause that the server asks for: such a request was not applied.
func do(ctx context.Context, r *rest.Request) (contentType string, body []byte, err error) {
	for attempt := 0; ; attempt++ {
		result := r.Do(ctx)
		err := result.Error()
		if err == nil {
			result.ContentType(&contentType)
			body, err = result.Raw()
			return contentType, body, err
		}
		wait, tooBusy := apierrors.SuggestsClientDelay(err)
		if !tooBusy || !apierrors.IsTooManyRequests(err) || attempt == maxThrottled {
			return "", nil, err
		}
		pause := time.NewTimer(min(time.Duration(wait)*time.Second, maxPause))
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return "", nil, err
		}
	}
}

// named adds the resource and the name to the error of an answer that is not a Status. The library knows only the path.
func (r *Request) named(resource Resource, err error) error {
	var status *apierrors.StatusError
	if !errors.As(err, &status) || status.ErrStatus.Details == nil || status.ErrStatus.Details.Kind != "" {
		return err
	}
	for _, cause := range status.ErrStatus.Details.Causes {
		if cause.Type == metav1.CauseTypeUnexpectedServerResponse {
			return apierrors.NewGenericServerResponse(int(status.ErrStatus.Code), r.Verb, resource.GroupResource(),
				r.name(), cause.Message, int(status.ErrStatus.Details.RetryAfterSeconds), true)
		}
	}
	return err
}
