package requestinfo_test

import (
	"net/url"
	"reflect"
	"testing"

	"github.com/flyball-dev/flyball/internal/requestinfo"
)

// TestParse: what the authorizer sees of a request.
//
// Source: k8s.io/apiserver v0.37.2 pkg/endpoints/request/requestinfo.go.
func TestParse(t *testing.T) {
	type info = requestinfo.Info
	in := func(i info) info {
		i.IsResource, i.Version = true, "v1"
		return i
	}
	for _, c := range []struct {
		method, url string
		want        info
	}{
		{"GET", "/apis", info{Verb: "get"}},
		{"HEAD", "/api/v1", info{Verb: "head"}},
		{"GET", "/apis/apps/v1/", info{Verb: "get"}},
		{"GET", "/api/v1/pods", in(info{Verb: "list", Resource: "pods"})},
		{"HEAD", "/api/v1/pods", in(info{Verb: "list", Resource: "pods"})},
		{"GET", "/api/v1/pods?watch", in(info{Verb: "watch", Resource: "pods"})},
		{"GET", "/api/v1/pods?watch=0", in(info{Verb: "list", Resource: "pods"})},
		{"GET", "/api/v1/pods?fieldSelector=metadata.name%3Dp", in(info{Verb: "list", Resource: "pods", Name: "p"})},
		{"GET", "/api/v1/pods?fieldSelector=metadata.name%3Dp&limit=x", in(info{Verb: "list", Resource: "pods"})},
		{"GET", "/api/v1/pods?fieldSelector=metadata.name%3Da/b", in(info{Verb: "list", Resource: "pods"})},
		{
			"DELETE", "/api/v1/pods?fieldSelector=metadata.name%3Dp",
			in(info{Verb: "deletecollection", Resource: "pods"}),
		},
		{"POST", "/api/v1/pods?fieldSelector=metadata.name%3Dp", in(info{Verb: "create", Resource: "pods"})},
		{
			"GET", "/api/v1/namespaces/x",
			in(info{Verb: "get", Resource: "namespaces", Namespace: "x", Name: "x", Named: true}),
		},
		{
			"PUT", "/api/v1/namespaces/x/finalize",
			in(
				info{
					Verb: "update", Resource: "namespaces", Namespace: "x", Name: "x", Named: true,
					Subresource: "finalize", Rest: []string{},
				},
			),
		},
		{
			"GET", "/api/v1/namespaces/x/namespaces/y",
			in(info{Verb: "get", Resource: "namespaces", Namespace: "x", Within: true, Name: "y", Named: true}),
		},
		{"PATCH", "/apis/apps/v1/namespaces/x/deployments/d/scale/", in(info{
			Verb: "patch", Group: "apps", Resource: "deployments", Namespace: "x", Within: true, Name: "d",
			Named: true, Subresource: "scale", Rest: []string{},
		})},
		{"GET", "/api/v1/namespaces/x/pods/p/proxy/a/b", in(info{
			Verb: "get", Resource: "pods", Namespace: "x", Within: true, Name: "p", Named: true, Subresource: "proxy",
			Rest: []string{"a", "b"},
		})},
		{
			"DELETE", "/api/v1/watch/namespaces/x/pods/p",
			in(info{Verb: "watch", Resource: "pods", Namespace: "x", Within: true, Name: "p", Named: true}),
		},
		{"GET", "/api/v1/watch/pods?fieldSelector=metadata.name%3Dp", in(info{Verb: "watch", Resource: "pods"})},
		{"GET", "/api/v1/proxy/nodes/n/x", in(info{Verb: "proxy", Resource: "nodes", Name: "n", Named: true})},
		{"OPTIONS", "/api/v1/pods/p", in(info{Resource: "pods", Name: "p", Named: true})},
		{"GET", "/api/v1/namespaces//pods", in(info{Verb: "list", Resource: "pods", Within: true})},
	} {
		u, err := url.Parse(c.url)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := requestinfo.Parse(c.method, u, u.Query()); err != nil || !reflect.DeepEqual(got, c.want) {
			t.Errorf("%s %s: %+v, %v\nwant %+v", c.method, c.url, got, err, c.want)
		}
	}
	for _, path := range []string{"/api/v1/watch", "/apis/apps/v1/proxy/"} {
		if got, err := requestinfo.Parse("GET", &url.URL{Path: path}, nil); err == nil {
			t.Errorf("%s: %+v", path, got)
		}
	}
}
