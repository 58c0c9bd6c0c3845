package localapi

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apidiscovery "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/flyball-dev/flyball/localapi"
)

// notServed are the subresources that kube-apiserver has of types that we serve, and we do not have.
// docs/divergence.md names them.
var notServed = map[string]string{
	"pods/resize": "needs a kubelet",
}

// bothServers are the real server and a new one of ours, as clients see them without any script.
func bothServers(t *testing.T) (real, ours *rest.Config) {
	t.Helper()
	real, err := clientcmd.BuildConfigFromFlags("", plane.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	server, err := localapi.New(localapi.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := server.Close(); err != nil {
			t.Error(err)
		}
	})
	return real, server.RESTConfig()
}

// get reads a document into v.
func get(t *testing.T, config *rest.Config, path, accept string, v any) {
	t.Helper()
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		t.Fatal(err)
	}
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, config.Host+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Accept", accept)
	response, err := client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	if err := decodeInto(response.Body, v); err != nil || response.StatusCode != http.StatusOK {
		t.Fatalf("%s%s: %s, %v", config.Host, path, response.Status, err)
	}
}

// TestDiscovery compares the discovery documents of the types that both servers serve.
func TestDiscovery(t *testing.T) {
	real, ours := bothServers(t)
	var groups, realGroups metav1.APIGroupList
	get(t, ours, "/apis", "application/json", &groups)
	get(t, real, "/apis", "application/json", &realGroups)
	paths := []string{"/api/v1"}
	for _, g := range groups.Groups {
		i := slices.IndexFunc(realGroups.Groups, func(other metav1.APIGroup) bool { return other.Name == g.Name })
		if i < 0 {
			t.Errorf("kube-apiserver has no group %q", g.Name)
			continue
		}
		if want := realGroups.Groups[i].PreferredVersion; g.PreferredVersion != want {
			t.Errorf("group %s: preferred version %s, kube-apiserver says %s", g.Name, g.PreferredVersion.Version,
				want.Version)
		}
		for _, v := range g.Versions {
			paths = append(paths, "/apis/"+v.GroupVersion)
		}
	}
	seen := map[string]bool{}
	for _, path := range paths {
		compareResources(t, real, ours, path, seen)
	}
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "divergence.md"))
	if err != nil {
		t.Fatal(err)
	}
	for name := range notServed {
		if !strings.Contains(string(text), "`"+name+"`") {
			t.Errorf("docs/divergence.md does not name %s", name)
		}
		if !seen[name] {
			t.Errorf("%s is listed as not served, but kube-apiserver has no such resource, or we do serve it", name)
		}
	}
}

// compareResources compares the entries of the resources that we serve, and looks for parts of them that we do not.
func compareResources(t *testing.T, real, ours *rest.Config, path string, seen map[string]bool) {
	t.Helper()
	var have, want metav1.APIResourceList
	get(t, ours, path, "application/json", &have)
	get(t, real, path, "application/json", &want)
	served := map[string]bool{}
	for _, r := range have.APIResources {
		served[r.Name] = true
		i := slices.IndexFunc(want.APIResources, func(other metav1.APIResource) bool { return other.Name == r.Name })
		if i < 0 {
			t.Errorf("%s: kube-apiserver has no %s", path, r.Name)
			continue
		}
		w := want.APIResources[i]
		w.StorageVersionHash, r.StorageVersionHash = "", ""
		for _, d := range differences(path+" "+r.Name, asTree(t, w), asTree(t, r)) {
			t.Error(d)
		}
	}
	for _, r := range want.APIResources {
		parent, _, sub := strings.Cut(r.Name, "/")
		if !sub || !served[parent] || served[r.Name] {
			continue
		}
		if _, ok := notServed[r.Name]; !ok {
			t.Errorf("%s: %s is not served", path, r.Name)
		}
		seen[r.Name] = true
	}
}

// aggregated is the Accept header of clients that want the groups and their resources in one document.
const aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// TestAggregatedDiscovery compares the document that kubectl reads.
func TestAggregatedDiscovery(t *testing.T) {
	real, ours := bothServers(t)
	for _, path := range []string{"/api", "/apis"} {
		var have, want apidiscovery.APIGroupDiscoveryList
		get(t, ours, path, aggregated, &have)
		get(t, real, path, aggregated, &want)
		entries := map[schema.GroupVersionResource]apidiscovery.APIResourceDiscovery{}
		for gvr, r := range discovered(want) {
			entries[gvr] = r
		}
		for gvr, r := range discovered(have) {
			w, ok := entries[gvr]
			if !ok {
				t.Errorf("kube-apiserver has no %v", gvr)
				continue
			}
			w.Subresources = slices.DeleteFunc(w.Subresources, func(s apidiscovery.APISubresourceDiscovery) bool {
				_, ok := notServed[r.Resource+"/"+s.Subresource]
				return ok
			})
			for _, d := range differences(gvr.String(), asTree(t, w), asTree(t, r)) {
				t.Error(d)
			}
		}
	}
}

// discovered are the resources of a document.
func discovered(
	list apidiscovery.APIGroupDiscoveryList,
) map[schema.GroupVersionResource]apidiscovery.APIResourceDiscovery {
	found := map[schema.GroupVersionResource]apidiscovery.APIResourceDiscovery{}
	for _, g := range list.Items {
		for _, v := range g.Versions {
			for _, r := range v.Resources {
				found[schema.GroupVersionResource{Group: g.Name, Version: v.Version, Resource: r.Resource}] = r
			}
		}
	}
	return found
}
