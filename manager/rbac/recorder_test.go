package rbac_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/manager/rbac"
)

func ExampleNewRecorder() {
	server, err := localapi.New(localapi.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer server.Close()
	recorder := rbac.NewRecorder()
	config := rest.CopyConfig(server.RESTConfig())
	config.Wrap(recorder.Wrap)
	client := kubernetes.NewForConfigOrDie(config)
	maps := client.CoreV1().ConfigMaps("default")
	if _, err := maps.Create(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, metav1.CreateOptions{}); err != nil {
		fmt.Println(err)
		return
	}
	text, err := yaml.Marshal(recorder.ClusterRole("example").Rules)
	fmt.Print(string(text), err)
	// Output:
	// - apiGroups:
	//   - ""
	//   resources:
	//   - configmaps
	//   verbs:
	//   - create
	// <nil>
}

func TestRequestsAreReadAsTheServerReadsThem(t *testing.T) {
	for _, c := range []struct {
		method, path string
		want         rbac.Call
	}{
		{"GET", "/api/v1/pods", rbac.Call{Resource: "pods", Verb: "list"}},
		{"GET", "/api/v1/pods?watch=true", rbac.Call{Resource: "pods", Verb: "watch"}},
		{"GET", "/api/v1/namespaces/a", rbac.Call{Resource: "namespaces", Verb: "get"}},
		{"PUT", "/api/v1/namespaces/a/finalize", rbac.Call{Resource: "namespaces", Subresource: "finalize", Verb: "update"}},
		{"GET", "/api/v1/namespaces/a/pods/p", rbac.Call{Resource: "pods", Namespace: "a", Verb: "get"}},
		{"POST", "/api/v1/namespaces/a/pods/p/eviction", rbac.Call{Resource: "pods", Subresource: "eviction", Namespace: "a", Verb: "create"}},
		{"PATCH", "/apis/apps/v1/namespaces/a/deployments/d/status", rbac.Call{Group: "apps", Resource: "deployments", Subresource: "status", Namespace: "a", Verb: "patch"}},
		{"DELETE", "/apis/apps/v1/namespaces/a/deployments/d", rbac.Call{Group: "apps", Resource: "deployments", Namespace: "a", Verb: "delete"}},
		{"DELETE", "/apis/apps/v1/namespaces/a/deployments", rbac.Call{Group: "apps", Resource: "deployments", Namespace: "a", Verb: "deletecollection"}},
	} {
		recorder := rbac.NewRecorder()
		pass := recorder.Wrap(answered{})
		for _, path := range []string{c.path, "/version", "/apis", "/api/v1", "/apis/apps/v1"} {
			if _, err := pass.RoundTrip(httptest.NewRequest(c.method, path, nil)); err != nil {
				t.Fatal(err)
			}
		}
		if got := recorder.Calls(); len(got) != 1 || got[0] != c.want {
			t.Errorf("%s %s: %+v, want %+v", c.method, c.path, got, c.want)
		}
	}
}

type answered struct{}

func (answered) RoundTrip(*http.Request) (*http.Response, error) { return &http.Response{}, nil }

// Leases get a Role by name; a process in one namespace gets a Role of its own there.
func TestRolesOfANamespace(t *testing.T) {
	recorder := rbac.NewRecorder()
	pass := recorder.Wrap(answered{})
	for _, request := range []string{
		"GET /apis/coordination.k8s.io/v1/namespaces/a/leases/mine", "POST /apis/coordination.k8s.io/v1/namespaces/a/leases",
		"PUT /apis/coordination.k8s.io/v1/namespaces/a/leases/mine", "GET /api/v1/namespaces/a/pods", "GET /api/v1/namespaces/a/pods?watch=1",
		"DELETE /api/v1/namespaces/a/pods/p", "GET /api/v1/namespaces/b/pods", "GET /api/v1/nodes",
	} {
		method, path, _ := strings.Cut(request, " ")
		if _, err := pass.RoundTrip(httptest.NewRequest(method, path, nil)); err != nil {
			t.Fatal(err)
		}
	}
	text, err := yaml.Marshal([]any{recorder.LeaseRole("x", "a").Rules, recorder.Role("x", "a").Rules})
	if err != nil {
		t.Fatal(err)
	}
	const want = `- - apiGroups:
    - coordination.k8s.io
    resources:
    - leases
    verbs:
    - create
  - apiGroups:
    - coordination.k8s.io
    resourceNames:
    - mine
    resources:
    - leases
    verbs:
    - get
    - update
- - apiGroups:
    - ""
    resources:
    - pods
    verbs:
    - delete
    - list
    - watch
`
	if string(text) != want {
		t.Errorf("rules\n%s", text)
	}
	all, err := recorder.Manifests("x", "a", "account")
	if n := strings.Count(string(all), "\n---\n"); err != nil || n != 3 || strings.Contains(string(all), "'*'") {
		t.Errorf("%v, %d objects:\n%s", err, n+1, all)
	}
}
