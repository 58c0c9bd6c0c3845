package handlers

import (
	"net/http"
	"net/url"
	"strings"

	"github.com/flyball-dev/flyball/localapi/gate"
)

// parseRequest reads a request's path and method as a kube-apiserver does. ok is false for paths that are not of the
// shape of a resource's.
//
// Source: k8s.io/apiserver pkg/endpoints/request/requestinfo.go.
func parseRequest(r *http.Request, query url.Values) (info *gate.Request, ok bool) {
	info = &gate.Request{
		Verb: strings.ToLower(r.Method), Path: r.URL.Path, UserAgent: r.UserAgent(), Header: r.Header,
	}
	parts := strings.Split(strings.Trim(r.URL.Path, "/"), "/")
	switch {
	case len(parts) >= 3 && parts[0] == "api":
		info.Version, parts = parts[1], parts[2:]
	case len(parts) >= 4 && parts[0] == "apis":
		info.Group, info.Version, parts = parts[1], parts[2], parts[3:]
	default:
		return info, false
	}
	watch := isTrue(query, "watch") // of an object in the path it says nothing: that is a get
	oldWatch := false
	if parts[0] == "watch" && len(parts) > 1 { // the old form of ?watch=true
		watch, oldWatch, parts = true, true, parts[1:]
	}
	if parts[0] == "namespaces" && len(parts) > 2 && !namespaceSubresource(info.Group, parts) {
		info.Namespace, parts = parts[1], parts[2:]
	}
	info.Resource = parts[0]
	if len(parts) > 1 {
		info.Name = parts[1]
	}
	if len(parts) > 2 {
		info.Subresource = strings.Join(parts[2:], "/")
		if parts[2] == "proxy" { // what follows is a path there
			info.Subresource = parts[2]
		}
	}
	info.Verb = verb(r.Method, info, watch, oldWatch)
	return info, true
}

// namespaceSubresource tells /namespaces/x/status from a resource called "status" in namespace x.
func namespaceSubresource(group string, parts []string) bool {
	return group == "" && len(parts) == 3 && (parts[2] == "status" || parts[2] == "finalize")
}

func verb(method string, info *gate.Request, watch, oldWatch bool) string {
	switch method {
	case http.MethodPost:
		return "create"
	case http.MethodPut:
		return "update"
	case http.MethodPatch:
		return "patch"
	case http.MethodDelete:
		if info.Name == "" {
			return "deletecollection"
		}
		return "delete"
	case http.MethodGet, http.MethodHead:
		switch {
		case watch && info.Subresource == "" && (info.Name == "" || oldWatch):
			return "watch"
		case info.Name == "":
			return "list"
		}
		return "get"
	}
	return strings.ToLower(method)
}

// isTrue reads a boolean query parameter as the API does: what is there is true, unless it says that it is not.
//
// Source: k8s.io/apimachinery v0.37.2 pkg/runtime/conversion.go Convert_Slice_string_To_bool.
func isTrue(query url.Values, name string) bool {
	values := query[name]
	return len(values) > 0 && values[0] != "0" && !strings.EqualFold(values[0], "false")
}
