package localapi_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"

	"github.com/flyball-dev/flyball/client/manifest"
	"github.com/flyball-dev/flyball/localapi"
)

// Source: k8s.io/kubernetes v1.37.2 pkg/controlplane/controller/legacytokentracking.
func TestTokenTracking(t *testing.T) {
	server := localapi.NewTestWith(t, localapi.Options{ClusterObjects: true})
	c := kubernetes.NewForConfigOrDie(server.RESTConfig())
	o, err := c.CoreV1().ConfigMaps("kube-system").Get(t.Context(),
		"kube-apiserver-legacy-service-account-token-tracking", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := time.Parse(time.DateOnly, o.Data["since"]); err != nil {
		t.Error(err)
	}
}

// TestDefaultServiceCIDR finds the address of every Service in the ranges that the ServiceCIDR kubernetes names.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controlplane/controller/defaultservicecidr.
func TestDefaultServiceCIDR(t *testing.T) {
	server := localapi.NewTestWith(t, localapi.Options{ClusterObjects: true})
	c := kubernetes.NewForConfigOrDie(server.RESTConfig())
	ranges, err := c.NetworkingV1().ServiceCIDRs().Get(t.Context(), "kubernetes", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if !meta.IsStatusConditionTrue(ranges.Status.Conditions, "Ready") || ranges.UID == "" {
		t.Errorf("the ServiceCIDR is not ready: %+v", ranges)
	}
	service, err := c.CoreV1().Services("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	inside := false
	for _, cidr := range ranges.Spec.CIDRs {
		inside = inside || netip.MustParsePrefix(cidr).Contains(netip.MustParseAddr(service.Spec.ClusterIP))
	}
	if !inside {
		t.Errorf("%s is in none of %v", service.Spec.ClusterIP, ranges.Spec.CIDRs)
	}
}

// TestAPIServices finds an APIService for every served version, including those of custom resources.
//
// Source: k8s.io/kube-aggregator v0.37.2 pkg/controllers/autoregister, k8s.io/kubernetes v1.37.2
// pkg/controlplane/controller/crdregistration.
func TestAPIServices(t *testing.T) {
	server := localapi.NewTestWith(t, localapi.Options{ClusterObjects: true})
	services := dynamic.NewForConfigOrDie(server.RESTConfig()).Resource(schema.GroupVersionResource{
		Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices",
	})
	groups, err := discovery.NewDiscoveryClientForConfigOrDie(server.RESTConfig()).ServerGroups()
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range groups.Groups {
		for _, v := range g.Versions {
			if g.Name == "apiregistration.k8s.io" {
				continue // as in a cluster: the server that has the APIServices serves it
			}
			s, err := services.Get(t.Context(), v.Version+"."+g.Name, metav1.GetOptions{})
			if err != nil {
				t.Errorf("%s: %v", v.GroupVersion, err)
				continue
			}
			conditions, _, _ := unstructured.NestedSlice(s.Object, "status", "conditions")
			priority, _, _ := unstructured.NestedInt64(s.Object, "spec", "groupPriorityMinimum")
			if len(conditions) != 1 || conditions[0].(map[string]any)["status"] != "True" || priority <= 1000 {
				t.Errorf("%s: %v", v.GroupVersion, s.Object)
			}
		}
	}
	other := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1.a.io"},
		"spec": map[string]any{
			"group": "a.io", "version": "v1", "groupPriorityMinimum": int64(1), "versionPriority": int64(1),
			"service": map[string]any{"namespace": "default", "name": "a"},
		},
	}}
	if other, err = services.Create(t.Context(), other, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	conditions, _, _ := unstructured.NestedSlice(other.Object, "status", "conditions")
	if len(conditions) != 1 || conditions[0].(map[string]any)["reason"] != "NotServed" {
		t.Errorf("of another server: %v", conditions)
	}
	definitions, err := manifest.ReadFiles([]string{"testdata/backups.yaml"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	crds := dynamic.NewForConfigOrDie(server.RESTConfig()).Resource(schema.GroupVersionResource{
		Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions",
	})
	crd, err := crds.Create(t.Context(), definitions[0].Unstructured, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := services.Get(t.Context(), "v1.example.com", metav1.GetOptions{}); err != nil {
		t.Errorf("of a custom resource: %v", err)
	}
	if err := crds.Delete(t.Context(), crd.GetName(), metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := services.Get(t.Context(), "v1.example.com", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("after the definition was deleted: %v", err)
	}
	if _, err := services.Get(t.Context(), "v1.", metav1.GetOptions{}); err != nil {
		t.Errorf("of the core group: %v", err)
	}
}

// TestAPIServiceWithoutKind leaves the kind and the apiVersion to the server, which knows them from the path.
//
// Source: k8s.io/kubernetes v1.37.2 test/integration/apiserver/cel.
func TestAPIServiceWithoutKind(t *testing.T) {
	_, config := start(t, localapi.Options{ClusterObjects: true})
	const path = "/apis/apiregistration.k8s.io/v1/apiservices"
	const body = `"metadata":{"name":"v1.a.io"},"spec":{"group":"a.io","version":"v1","groupPriorityMinimum":1,` +
		`"versionPriority":1}}`
	const yaml = "metadata: {name: v1.a.io}\n" +
		"spec: {group: a.io, version: v1, groupPriorityMinimum: 1, versionPriority: 1}\n"
	for _, test := range []struct {
		contentType, body string
		code              int
	}{
		{"application/json", `{` + body, 201},
		{"application/json", `{"kind":"APIService",` + body, 201},
		{"application/json", `{"apiVersion":"apiregistration.k8s.io/v1",` + body, 201},
		{"application/yaml", yaml, 201},
		{"application/json", `{"apiVersion":"v1",` + body, 400},
		{"application/json", `[]`, 400},
	} {
		for _, strictness := range []string{"Ignore", "Warn", "Strict"} {
			code, got := answer(t, config, request{
				method: "POST", path: path + "?dryRun=All&fieldValidation=" + strictness,
				contentType: test.contentType, body: test.body,
			})
			if code != test.code || code == 201 && (!strings.Contains(got, `"kind":"APIService"`) ||
				!strings.Contains(got, `"apiVersion":"apiregistration.k8s.io/v1"`)) {
				t.Errorf("%s with %s: %d, want %d: %s", test.body, strictness, code, test.code, got)
			}
		}
	}
	if code, got := answer(t, config, request{
		method: "PUT", path: path + "/v1.apps", contentType: "application/json", body: `{` + body,
	}); code != 400 || !strings.Contains(got, "does not match the name on the URL") {
		t.Errorf("update with another name: %d, want 400: %s", code, got)
	}
}
