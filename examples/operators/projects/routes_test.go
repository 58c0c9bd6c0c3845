package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/examples/operators/internal/optest"
	"github.com/flyball-dev/flyball/localapi"
)

// The path of a control plane is before, the name of the Project, after.
const (
	before = "/apis/resourcemanager.miloapis.com/v1alpha1/projects/"
	after  = "/control-plane"
)

// route returns the control plane that a request is for, and the path in it.
func route(path string) (name, below string, found bool) {
	rest, ok := strings.CutPrefix(path, before)
	if !ok {
		return "", "", false
	}
	name, below, found = strings.Cut(rest, after)
	if !found || strings.Contains(name, "/") || below != "" && below[0] != '/' {
		return "", "", false
	}
	below = cmp.Or(below, "/")
	return name, below, true
}

// find returns the server of a name. silent is true if it does not answer.
func (h *host) find(name string) (server *localapi.Server, silent bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if p := h.planes[name]; p != nil {
		server = p.server
	}
	return server, h.silent[name]
}

// below returns the request as the control plane gets it.
func below(r *http.Request, path string) *http.Request {
	r = r.Clone(r.Context())
	r.URL = &url.URL{Scheme: "http", Host: "control-plane", Path: path, RawQuery: r.URL.RawQuery}
	r.RequestURI = r.URL.RequestURI()
	return r
}

// missing returns the answer for an unknown control plane.
func missing() []byte {
	text, _ := json.Marshal(metav1.Status{ // cannot fail
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Reason: metav1.StatusReasonNotFound, Code: http.StatusNotFound, Message: "there is no such control plane",
	})
	return text
}

// Wrap routes a client's requests for control planes to servers in this process, and all others to next.
func (h *host) Wrap(next http.RoundTripper) http.RoundTripper {
	return optest.RoundTripper(func(r *http.Request) (*http.Response, error) {
		name, path, found := route(r.URL.Path)
		if !found {
			return next.RoundTrip(r)
		}
		server, silent := h.find(name)
		switch {
		case silent:
			<-r.Context().Done()
			return nil, r.Context().Err()
		case server == nil:
			return &http.Response{
				StatusCode: http.StatusNotFound, Status: "404 Not Found", Proto: "HTTP/1.1", ProtoMajor: 1,
				ProtoMinor: 1, Request: r,
				Header: http.Header{"Content-Type": {"application/json"}},
				Body:   io.NopCloser(bytes.NewReader(missing())),
			}, nil
		}
		request := below(r, path)
		request.RequestURI = ""
		return server.RESTConfig().Transport.RoundTrip(request)
	})
}

// Handler routes requests to control planes, and all others to next: together they serve what a cluster with Projects
// serves.
func (h *host) Handler(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, path, found := route(r.URL.Path)
		if !found {
			next.ServeHTTP(w, r)
			return
		}
		server, silent := h.find(name)
		switch {
		case silent:
			<-r.Context().Done()
		case server == nil:
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write(missing())
		default:
			server.Handler().ServeHTTP(w, below(r, path))
		}
	})
}
