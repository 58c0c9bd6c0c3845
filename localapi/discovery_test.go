package localapi_test

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi3"
	"k8s.io/client-go/restmapper"

	"github.com/flyball-dev/flyball/localapi"
	"github.com/flyball-dev/flyball/localapi/audit"
)

func corev1GVR(resource string) schema.GroupVersionResource {
	return corev1.SchemeGroupVersion.WithResource(resource)
}

func TestDiscovery(t *testing.T) {
	for _, form := range []string{"aggregated", "legacy"} {
		t.Run(form, func(t *testing.T) {
			log := &audit.Log{}
			_, config := start(t, localapi.Options{Audit: log})
			client, err := discovery.NewDiscoveryClientForConfig(config)
			if err != nil {
				t.Fatal(err)
			}
			client.UseLegacyDiscovery = form == "legacy"
			groups, resources, err := client.ServerGroupsAndResources()
			if err != nil {
				t.Fatalf("discover: %v", err)
			}
			if requests := len(log.Entries(nil)); form == "aggregated" && requests != 2 {
				t.Errorf("aggregated discovery took %d requests, want 2", requests)
			}
			if !slices.ContainsFunc(groups,
				func(g *metav1.APIGroup) bool { return g.Name == "apps" && g.PreferredVersion.Version == "v1" }) {
				t.Errorf("no group apps with version v1 in %v", groups)
			}
			found := map[string]string{}
			for _, list := range resources {
				for _, r := range list.APIResources {
					found[list.GroupVersion+" "+r.Name] = strings.Join(append(r.ShortNames, r.Verbs...), " ")
				}
			}
			for name, want := range map[string]string{
				"v1 pods":                    "po create delete deletecollection get list patch update watch",
				"v1 pods/binding":            "create",
				"apps/v1 deployments":        "deploy create delete deletecollection get list patch update watch",
				"apps/v1 deployments/scale":  "get patch update",
				"apps/v1 deployments/status": "get patch update",
			} {
				if found[name] != want {
					t.Errorf("%s is discovered as %q, want %q", name, found[name], want)
				}
			}
			mapper := restmapper.NewDiscoveryRESTMapper(mustGroups(t, client))
			if m, err := mapper.RESTMapping(schema.GroupKind{Group: "apps", Kind: "Deployment"}); err != nil ||
				m.Resource.Resource != "deployments" {
				t.Errorf("mapping of Deployment: %v, %v", m, err)
			}
			version, err := client.ServerVersion()
			if err != nil || version.Major != "1" {
				t.Errorf("version: %v, %v", version, err)
			}
		})
	}
}

func mustGroups(t *testing.T, client discovery.DiscoveryInterface) []*restmapper.APIGroupResources {
	t.Helper()
	groups, err := restmapper.GetAPIGroupResources(client)
	if err != nil {
		t.Fatalf("discover for a mapper: %v", err)
	}
	return groups
}

func TestOpenAPI(t *testing.T) {
	_, config := start(t, localapi.Options{})
	client, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	root := openapi3.NewRoot(client.OpenAPIV3())
	versions, err := root.GroupVersions()
	if err != nil || !slices.Contains(versions, schema.GroupVersion{Group: "apps", Version: "v1"}) {
		t.Fatalf("group versions: %v, %v", versions, err)
	}
	spec, err := root.GVSpec(schema.GroupVersion{Group: "apps", Version: "v1"})
	if err != nil {
		t.Fatalf("apps/v1: %v", err)
	}
	patch := spec.Paths.Paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"].Patch
	var parameters []string
	for _, p := range patch.Parameters {
		parameters = append(parameters, p.Name)
	}
	if !slices.Contains(parameters, "fieldValidation") {
		t.Errorf("a patch's parameters are %v, want fieldValidation among them", parameters)
	}
	containers := spec.Components.Schemas["io.k8s.api.core.v1.PodSpec"].Properties["containers"]
	if key := containers.Extensions["x-kubernetes-patch-merge-key"]; key != "name" {
		t.Errorf("containers are merged by %v, want name", key)
	}
	for name, s := range spec.Components.Schemas {
		for property, p := range s.Properties {
			if p.Ref.String() == "" && len(p.Type) == 0 && len(p.AllOf) == 0 && len(p.OneOf) == 0 &&
				p.Description == "" {
				t.Errorf("%s.%s has no type", name, property)
			}
		}
	}
}

func TestHealth(t *testing.T) {
	_, config := start(t, localapi.Options{})
	for path, want := range map[string]string{
		"/healthz": "ok", "/livez": "ok", "/readyz": "ok", "/readyz?verbose": "[+]ping ok\nreadyz check passed\n",
	} {
		if code, body := answer(t, config, request{path: path}); code != 200 || body != want {
			t.Errorf("%s: %d %q, want %q", path, code, body, want)
		}
	}
	for path, want := range map[string]int{
		"/healthz/": 404, "/readyz/": 404, "/openapi/v2/": 404, "/version/": 200, "/api/": 200, "/apis/": 200,
		"/apis/apps/": 200, "/apis/apps/v1/": 200,
	} {
		wantCode(t, config, want, request{path: path})
	}
	if code, body := answer(t, config, request{path: "/"}); code != 200 || !strings.Contains(body, `"/apis/apps/v1"`) {
		t.Errorf("/: %d %s", code, body)
	}
}
