package live

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
)

// Place is where a request goes: to an object, or to a collection if there is no name.
type Place struct {
	Resource
	Namespace, Name, Subresource string
}

// PlaceOf returns the place of an object.
func (s *Server) PlaceOf(ctx context.Context, gvk schema.GroupVersionKind, key types.NamespacedName,
	subresource string,
) (Place, error) {
	r, err := s.Mapper.Of(ctx, gvk)
	if err != nil {
		return Place{}, err
	}
	p := Place{Resource: r, Namespace: key.Namespace, Name: key.Name, Subresource: subresource}
	if !r.Namespaced {
		p.Namespace = ""
	} else if key.Namespace == "" && key.Name != "" {
		return Place{}, fmt.Errorf("%s %s: %s are namespaced, and the namespace is empty", gvk.Kind, key.Name,
			r.GroupVersionResource.Resource)
	}
	return p, nil
}

// path returns the place below the server's address. It is put together once: the client's library would join it piece
// by piece, three times for each request.
//
// Errors: parts that would lead to another place, in the words of client-go.
func (p Place) path() (string, error) {
	for _, part := range []struct{ what, value string }{
		{"namespace", p.Namespace}, {"resource name", p.Name}, {"subresource", p.Subresource},
	} {
		if wrong := rest.IsValidPathSegmentName(part.value); len(wrong) > 0 {
			return "", fmt.Errorf("invalid %s %q: %v", part.what, part.value, wrong)
		}
	}
	path := apiPath(p.GroupVersion())
	if p.Namespace != "" {
		path += "/namespaces/" + p.Namespace
	}
	path += "/" + p.GroupVersionResource.Resource
	if p.Name != "" {
		path += "/" + p.Name
	}
	if p.Subresource != "" {
		path += "/" + p.Subresource
	}
	return path, nil
}

// Request is what is sent to a place. Empty fields are left out.
type Request struct {
	Verb                string
	Place               Place
	Params              url.Values
	Accept, ContentType string
	Body                []byte
}

// Send sends a request and returns the body of a success and its content type; answer says more. Answers are not
// retried by the client's library: it would send a create again that a failing server may have applied.
func (s *Server) Send(ctx context.Context, r Request) (contentType string, body []byte, err error) {
	path, err := r.Place.path()
	if err != nil {
		return "", nil, err
	}
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
	contentType, body, err = answer(ctx, request, r.Params)
	return contentType, body, r.named(err)
}

// named makes an error say what the request was about, where the answer was no Status: the client's library cannot tell
// from a path.
func (r *Request) named(err error) error {
	var status *apierrors.StatusError
	if !errors.As(err, &status) || status.ErrStatus.Details == nil || status.ErrStatus.Details.Kind != "" {
		return err
	}
	for _, cause := range status.ErrStatus.Details.Causes {
		if cause.Type == metav1.CauseTypeUnexpectedServerResponse {
			return apierrors.NewGenericServerResponse(int(status.ErrStatus.Code), r.Verb,
				r.Place.GroupVersionResource.GroupResource(), r.Place.Name, cause.Message,
				int(status.ErrStatus.Details.RetryAfterSeconds), true)
		}
	}
	return err
}

// maxThrottled is how often a request is repeated because the server is too busy, and maxPause the longest pause before
// that, whatever the server asks for.
const (
	maxThrottled = 10
	maxPause     = 5 * time.Minute
)

// answer sends a request and returns the body of a success and its content type. A server that says it is too busy
// (429) is asked again when it said to: nothing was applied. Whatever else fails is for the caller.
func answer(ctx context.Context, r *rest.Request, params url.Values) (contentType string, body []byte, err error) {
	for name, values := range params {
		for _, value := range values {
			r.Param(name, value)
		}
	}
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
