package live

import (
	"io"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientprotobuf "k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// answering is a transport that always gives the same answer. It records the paths of the requests.
type answering struct {
	code       int
	text, kind string
	retryAfter string
	paths      []string
}

func (a *answering) RoundTrip(r *http.Request) (*http.Response, error) {
	a.paths = append(a.paths, r.URL.EscapedPath())
	header := http.Header{}
	for name, value := range map[string]string{"Content-Type": a.kind, "Retry-After": a.retryAfter} {
		if value != "" {
			header.Set(name, value)
		}
	}
	return &http.Response{
		StatusCode: a.code, Request: r, Header: header, ContentLength: -1,
		Body: io.NopCloser(strings.NewReader(a.text)),
	}, nil
}

// failures returns 209 answers that are no successes: with a Status, whole or in part, or as a proxy may answer.
func failures(t *testing.T) (all []*answering) {
	status := metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure, Message: "no",
		Reason: metav1.StatusReasonForbidden, Code: 403,
		Details: &metav1.StatusDetails{Name: "web", Kind: "deployments", RetryAfterSeconds: 1},
	}
	serializer := clientprotobuf.NewSerializer(clientscheme.Scheme, clientscheme.Scheme)
	protobuf, err := runtime.Encode(
		clientscheme.Codecs.EncoderForVersion(serializer, schema.GroupVersion{Version: "v1"}), &status)
	if err != nil {
		t.Fatal(err)
	}
	for _, code := range []int{
		400, 401, 403, 404, 405, 406, 409, 410, 413, 415, 418, 422, 429, 500, 501, 502, 503, 504, 599,
	} {
		for _, a := range []answering{
			{
				kind: "application/json", text: `{"kind":"Status","apiVersion":"v1","status":"Failure",` +
					`"message":"no","reason":"Forbidden","details":{"name":"web","kind":"deployments"},"code":403}`,
			},
			{kind: "application/json; charset=utf-8", text: `{"status":"Failure","message":"no"}`, retryAfter: "1"},
			{kind: "application/json", text: `{"kind":"Status","apiVersion":"v1","status":"Success"}`},
			{kind: "application/json", text: `{"kind":"Deployment","apiVersion":"apps/v1"}`},
			{kind: "application/vnd.kubernetes.protobuf", text: string(protobuf)},
			{text: "no content type " + strings.Repeat("x", 3000)},
			{kind: "text/html", text: " <html>try later</html>\n", retryAfter: "2"},
			{kind: "application/octet-stream", text: "\x00\x01", retryAfter: "soon"},
			{kind: "text/plain"},
			{kind: "a/b/c; =", text: "no such media type"},
			{kind: "image/png", text: "png"},
		} {
			a.code = code
			all = append(all, &a)
		}
	}
	return all
}

// TestErrorsAndPathsAreThoseOfClientGo sends the same requests with a clientset to a server that refuses them.
func TestErrorsAndPathsAreThoseOfClientGo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, a := range failures(t) {
			compareWithClientGo(t, a)
		}
	})
}

func compareWithClientGo(t *testing.T, a *answering) {
	config := &rest.Config{Host: "https://localhost/base/", QPS: -1, Transport: a}
	s, err := New(config, clientscheme.Scheme, mapper(), nil)
	if err != nil {
		t.Fatal(err)
	}
	clientset := kubernetes.NewForConfigOrDie(config)
	patch := Request{
		Verb: "PATCH", GVK: deployments, Key: types.NamespacedName{Namespace: "default", Name: "web:1"},
		Body: []byte("{}"),
	}
	for _, subresource := range []string{"", "status"} {
		patch.Subresource, a.paths = subresource, nil
		_, _, got := s.Send(t.Context(), patch)
		ours := slices.Compact(a.paths)
		a.paths = nil
		var under []string
		if subresource != "" {
			under = append(under, subresource)
		}
		_, want := clientset.AppsV1().Deployments("default").Patch(t.Context(), "web:1",
			"application/merge-patch+json", []byte("{}"), metav1.PatchOptions{}, under...)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%d %q %.40q:\ngot  %#v\nwant %#v", a.code, a.kind, a.text, got, want)
		}
		if theirs := slices.Compact(a.paths); !slices.Equal(ours, theirs) {
			t.Errorf("paths: %q, want %q", ours, theirs)
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

// TestPaths: the name of an object to create is in its body alone. A cluster-scoped kind has no namespace in its paths,
// except where the request would then delete the objects of all namespaces.
func TestPaths(t *testing.T) {
	pods := Resource{
		GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "pods"}, Namespaced: true,
	}
	nodes := Resource{GroupVersionResource: schema.GroupVersionResource{Version: "v1", Resource: "nodes"}}
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
		err := c.request.resolve(c.resource)
		if got := c.request.path(c.request.namespace, c.request.name()); got != c.want || err != nil {
			t.Errorf("%s %v: %q, %v, want %q", c.request.Verb, c.request.Key, got, err, c.want)
		}
	}
}
