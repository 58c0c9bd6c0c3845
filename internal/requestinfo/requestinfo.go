// Package requestinfo parses a request to an API server: from its method and URL it derives the attributes by which the
// server's authorizer decides.
package requestinfo

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Info holds the attributes of a request.
type Info struct {
	// IsResource reports whether the path is that of a resource. If not, only Verb is set, to the lower-case method.
	IsResource bool

	// Verb is get, list, watch, create, update, patch, delete, deletecollection or proxy; "" for another method. It can
	// be part of the path, as in the deprecated /api/v1/watch/pods.
	Verb string

	Group, Version, Resource, Subresource string

	// Namespace is the namespace of the resource. For the path /namespaces/{name} it is the name of the namespace
	// object itself, and Within is false.
	Namespace string
	Within    bool

	// Name is the name of the object: the one in the path, or the one that the field selector of a list or watch
	// requires.
	Name string

	// Named reports whether the name is in the path.
	Named bool

	// Rest are the segments of the path after the subresource. No resource of the API itself has any.
	Rest []string
}

// Parse parses a request. query must be the query of u. Errors: the path begins like that of a resource but names none.
//
// Source: k8s.io/apiserver v0.37.2 pkg/endpoints/request/requestinfo.go.
func Parse(method string, u *url.URL, query url.Values) (Info, error) {
	parts := strings.Split(strings.Trim(u.Path, "/"), "/")
	i := Info{Verb: strings.ToLower(method)}
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		i.Version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		i.Group, i.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return i, nil
	}
	i.IsResource, i.Verb = true, verbs[method]
	if parts[0] == "watch" || parts[0] == "proxy" {
		if len(parts) < 2 {
			return i, fmt.Errorf("unable to determine kind and namespace from url, %v", u)
		}
		i.Verb, parts = parts[0], parts[1:] // the deprecated form, for any method
	}
	if parts[0] == "namespaces" && len(parts) > 1 {
		i.Namespace = parts[1]
		if len(parts) > 2 && parts[2] != "status" && parts[2] != "finalize" { // these are subresources of the namespace
			i.Within, parts = true, parts[2:]
		}
	}
	i.Resource = parts[0]
	if len(parts) > 1 {
		i.Name, i.Named = parts[1], parts[1] != ""
	}
	if len(parts) > 2 && i.Verb != "proxy" {
		i.Subresource, i.Rest = parts[2], parts[3:]
	}
	if !i.Named {
		i.ofCollection(query)
	}
	return i, nil
}

var verbs = map[string]string{
	http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
	http.MethodGet: "get", http.MethodHead: "get",
}

// ofCollection changes the verb for one object to the verb for a collection.
func (i *Info) ofCollection(query url.Values) {
	switch i.Verb {
	case "delete":
		i.Verb = "deletecollection"
	case "get":
		i.Verb = "list"
		if IsTrue(query, "watch") {
			i.Verb = "watch"
		}
		i.Name = selectedName(query)
	}
}

// selectedName returns the name that a list or watch is restricted to. A query that cannot be parsed restricts nothing.
func selectedName(query url.Values) string {
	if query.Get("fieldSelector") == "" {
		return ""
	}
	var o internalversion.ListOptions
	err := scheme.ParameterCodec.DecodeParameters(query, metav1.SchemeGroupVersion, &o)
	if err != nil || o.FieldSelector == nil {
		return ""
	}
	name, ok := o.FieldSelector.RequiresExactMatch("metadata.name")
	if !ok || len(content.IsPathSegmentName(name)) > 0 {
		return ""
	}
	return name
}

// IsTrue reads a boolean query parameter as the API does: a parameter that is present is true unless its value is "0"
// or "false".
//
// Source: k8s.io/apimachinery v0.37.2 pkg/runtime/conversion.go Convert_Slice_string_To_bool.
func IsTrue(query url.Values, name string) bool {
	values := query[name]
	return len(values) > 0 && values[0] != "0" && !strings.EqualFold(values[0], "false")
}
