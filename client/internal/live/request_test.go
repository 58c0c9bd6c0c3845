package live

import (
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// answering is a transport that always gives the same answer. It records the paths of the requests.
type answering struct {
	code       int
	text, kind string
	paths      []string
}

func (a *answering) RoundTrip(r *http.Request) (*http.Response, error) {
	a.paths = append(a.paths, r.URL.EscapedPath())
	return &http.Response{
		StatusCode: a.code, Request: r, Header: http.Header{"Content-Type": {a.kind}},
		Body: io.NopCloser(strings.NewReader(a.text)),
	}, nil
}

// TestErrorsAndPathsAreThoseOfClientGo sends the same requests with a clientset, to a server that refuses them with a
// Status or, as a proxy may, with a text.
func TestErrorsAndPathsAreThoseOfClientGo(t *testing.T) {
	for _, a := range []*answering{
		{code: 404, text: "404 page not found", kind: "text/plain"},
		{code: 503, text: "<html>try later</html>", kind: "text/html"},
		{
			code: 403, kind: "application/json",
			text: `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"no","reason":"Forbidden","code":403}`,
		},
	} {
		config := &rest.Config{Host: "https://localhost/base/", QPS: -1, Transport: a}
		s, err := New(config, clientscheme.Scheme, nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		clientset := kubernetes.NewForConfigOrDie(config)
		s.Mapper.known[deployments] = Resource{
			GroupVersionResource: schema.GroupVersionResource{Group: "apps", Version: "v1", Resource: "deployments"},
			Namespaced:           true,
		}
		patch := Request{
			Verb: "PATCH", GVK: deployments, Key: types.NamespacedName{Namespace: "default", Name: "web:1"},
			Body: []byte("{}"),
		}
		for _, subresource := range []string{"", "status"} {
			patch.Subresource, a.paths = subresource, nil
			_, _, got := s.Send(t.Context(), patch)
			var under []string
			if subresource != "" {
				under = append(under, subresource)
			}
			_, want := clientset.AppsV1().Deployments("default").Patch(t.Context(), "web:1",
				"application/merge-patch+json", []byte("{}"), metav1.PatchOptions{}, under...)
			if !reflect.DeepEqual(got, want) {
				t.Errorf("got  %#v\nwant %#v", got, want)
			}
			if len(a.paths) != 2 || a.paths[0] != a.paths[1] {
				t.Errorf("paths: %q", a.paths)
			}
		}
		for _, wrong := range []Request{
			{Key: types.NamespacedName{Namespace: "default", Name: ".."}},
			{Key: types.NamespacedName{Namespace: "a/b", Name: "web"}},
			{Key: types.NamespacedName{Namespace: "default", Name: "web"}, Subresource: "%2f"},
			{Key: types.NamespacedName{Name: "web"}},
		} {
			wrong.Verb, wrong.GVK = "GET", deployments
			a.paths = nil
			if _, _, err := s.Send(t.Context(), wrong); err == nil || a.paths != nil {
				t.Errorf("%+v: %v, sent to %q", wrong, err, a.paths)
			}
		}
	}
}

// TestPaths: the name of an object to create is in its body alone. A cluster-scoped kind has no namespace in its paths,
// except where the request would then delete the objects of all namespaces.
func TestPaths(t *testing.T) {
	pods := Resource{schema.GroupVersionResource{Version: "v1", Resource: "pods"}, true}
	nodes := Resource{schema.GroupVersionResource{Version: "v1", Resource: "nodes"}, false}
	key := types.NamespacedName{Namespace: "n", Name: "a"}
	for _, c := range []struct {
		resource Resource
		request  Request
		want     string
	}{
		{pods, Request{Verb: "GET", Key: key}, "/api/v1/namespaces/n/pods/a"},
		{pods, Request{Verb: "GET"}, "/api/v1/pods"},
		{pods, Request{Verb: "POST", Key: key}, "/api/v1/namespaces/n/pods"},
		{pods, Request{Verb: "POST", Key: key, Subresource: "eviction"}, "/api/v1/namespaces/n/pods/a/eviction"},
		{nodes, Request{Verb: "GET", Key: key}, "/api/v1/nodes/a"},
		{nodes, Request{Verb: "DELETE", Key: key}, "/api/v1/nodes/a"},
		{nodes, Request{Verb: "DELETE"}, "/api/v1/nodes"},
		{nodes, Request{Verb: "DELETE", Key: types.NamespacedName{Namespace: "n"}}, "/api/v1/namespaces/n/nodes"},
	} {
		if got, err := c.request.path(c.resource); got != c.want || err != nil {
			t.Errorf("%s %v: %q, %v, want %q", c.request.Verb, c.request.Key, got, err, c.want)
		}
	}
}
