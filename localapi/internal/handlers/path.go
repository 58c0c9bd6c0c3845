package handlers

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/flyball-dev/flyball/internal/requestinfo"
	"github.com/flyball-dev/flyball/localapi/gate"
	"github.com/flyball-dev/flyball/localapi/internal/rbac"
)

// target describes a request to the authorizer.
type target struct{ requestinfo.Info }

// parseRequest parses a request as a kube-apiserver does. Errors: the path names no resource where it must.
func parseRequest(r *http.Request, query url.Values) (*gate.Request, target, error) {
	i, err := requestinfo.Parse(r.Method, r.URL, query)
	info := &gate.Request{
		Verb: i.Verb, Path: r.URL.Path, Query: query, UserAgent: r.UserAgent(), Header: r.Header,
		Group: i.Group, Version: i.Version, Resource: i.Resource, Name: i.Name,
	}
	if i.Within {
		info.Namespace = i.Namespace
	}
	info.Subresource = i.Subresource
	if len(i.Rest) > 0 && i.Subresource != "proxy" { // the rest of a proxy's path is a path on its target
		info.Subresource = strings.Join(slices.Concat([]string{i.Subresource}, i.Rest), "/")
	}
	return info, target{i}, err
}

// attributes returns what a rule has to allow for the request.
func (t *target) attributes(path string) rbac.Attributes {
	if !t.IsResource {
		return rbac.Attributes{Verb: t.Verb, Path: path, NonResource: true}
	}
	return rbac.Attributes{
		Verb: t.Verb, Group: t.Group, Resource: t.Resource, Subresource: t.Subresource, Namespace: t.Namespace,
		Name: t.Name,
	}
}

// unreadable answers a request whose path is malformed.
//
// Source: k8s.io/apiserver v0.37.2 pkg/endpoints/filters/requestinfo.go,
// pkg/endpoints/handlers/responsewriters/errors.go InternalError.
func (x *exchange) unreadable(err error) {
	message := fmt.Sprintf("Internal Server Error: %q: failed to create RequestInfo: %v", x.r.RequestURI, err)
	http.Error(x.w, rbac.Sanitize(message), http.StatusInternalServerError)
	x.record(answer{code: http.StatusInternalServerError})
}
