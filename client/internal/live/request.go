package live

import (
	"context"
	"fmt"
	"net/url"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
		return Place{}, fmt.Errorf("%s %s: %s live in namespaces, and none is given", gvk.Kind, key.Name,
			r.GroupVersionResource.Resource)
	}
	return p, nil
}

// Request begins a request. Answers are not retried by the client's library: it would send a create again that a
// failing server may have applied.
func (s *Server) Request(verb string, p Place) *rest.Request {
	r := s.REST.Verb(verb).AbsPath(apiPath(p.GroupVersion())).NamespaceIfScoped(p.Namespace,
		p.Namespace != "").Resource(p.GroupVersionResource.Resource).MaxRetries(0)
	if p.Name != "" {
		r.Name(p.Name)
	}
	if p.Subresource != "" {
		r.SubResource(p.Subresource)
	}
	return r
}

// maxThrottled is how often a request is sent again that the server was too busy for.
const maxThrottled = 10

// Answer sends a request and returns the body of a success and its content type. A server that says it is too busy
// (429) is asked again when it said to: nothing was applied. Whatever else fails is for the caller.
func Answer(ctx context.Context, r *rest.Request, params url.Values) (contentType string, body []byte, err error) {
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
		pause := time.NewTimer(time.Duration(wait) * time.Second)
		select {
		case <-pause.C:
		case <-ctx.Done():
			pause.Stop()
			return "", nil, err
		}
	}
}
