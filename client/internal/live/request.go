package live

import (
	"fmt"
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
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

	// resource and namespace are set by resolve; namespace is the one in the path.
	resource  Resource
	namespace string
}

// name returns the name in the path. An object to create is named by the body alone.
func (r *Request) name() string {
	if r.Verb == http.MethodPost && r.Subresource == "" {
		return ""
	}
	return r.Key.Name
}

// resolve sets the resource of the request.
//
// Errors: a missing namespace; a part that would change the path, with the error text of client-go.
func (r *Request) resolve(resource Resource) error {
	r.resource, r.namespace = resource, r.Key.Namespace
	if resource.Namespaced && r.namespace == "" && r.Key.Name != "" {
		return fmt.Errorf("%s %s: %s are namespaced, and the namespace is empty", r.GVK.Kind, r.Key.Name,
			resource.Resource)
	}
	// A deletion of the objects of a namespace must not become a deletion of all objects. So the namespace stays in the
	// path, which the server refuses.
	if deletesAll := r.Verb == http.MethodDelete && r.name() == ""; !resource.Namespaced && !deletesAll {
		r.namespace = ""
	}
	for _, part := range [...]struct{ what, value string }{
		{"namespace", r.namespace}, {"resource name", r.name()}, {"subresource", r.Subresource},
	} {
		if wrong := rest.IsValidPathSegmentName(part.value); len(wrong) > 0 {
			return fmt.Errorf("invalid %s %q: %v", part.what, part.value, wrong)
		}
	}
	return nil
}

// path returns the path below the server's address, with the given names.
func (r *Request) path(namespace, name string) string {
	root := "/apis/"
	if r.resource.Group == "" {
		root = "/api"
	}
	path := append(make([]byte, 0, 128), root...)
	path = append(path, r.resource.Group...)
	for _, part := range [...]struct{ before, value string }{
		{"/", r.resource.Version},
		{"/namespaces/", namespace},
		{"/", r.resource.Resource},
		{"/", name},
		{"/", r.Subresource},
	} {
		if part.value != "" {
			path = append(append(path, part.before...), part.value...)
		}
	}
	return string(path)
}
