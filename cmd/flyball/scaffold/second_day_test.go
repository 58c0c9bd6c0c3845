package scaffold

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/localapi"
)

// TestForeign: what create refuses of kinds that are not the project's own.
func TestForeign(t *testing.T) {
	dir := newProjectDir(t, "v1/Guestbook")
	before := filesOf(t, dir)
	for _, c := range []struct {
		api  APIOptions
		want string
	}{
		{APIOptions{Group: "core", Version: "v1", Kind: "Pood"}, "neither the project nor Kubernetes has a kind Pood"},
		{APIOptions{Group: "apps", Version: "v2", Kind: "Deployment"}, "neither the project nor Kubernetes"},
		{APIOptions{Group: "acme", Version: "v1", Kind: "Issuer"}, "by --external-api-path"},
		{APIOptions{Group: "rbac", Version: "v1", Kind: "Role"}, "policy, rbac.authorization, resource"},
		{APIOptions{Group: "webapp", Version: "v1", Kind: "Guestbook"}, "the controller of Guestbook exists already"},
		{APIOptions{Group: "core", Version: "v1", Kind: "Pod", NoController: true}, "nothing to create"},
		{APIOptions{Group: "core", Version: "v1", Kind: "Pod", Storage: true}, "--storage is about a resource"},
	} {
		c.api.Dir, c.api.Out, c.api.NoResource = dir, &bytes.Buffer{}, true
		if err := CreateAPI(t.Context(), c.api); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c.api, err)
		}
	}
	o := WebhookOptions{
		Dir: dir, Group: "core", Version: "v1", Kind: "Pod", Conversion: true, Spokes: []string{"v2"},
		Out: &bytes.Buffer{},
	}
	if err := CreateWebhook(t.Context(), o); err == nil || !strings.Contains(err.Error(), "whose versions it could") {
		t.Errorf("a conversion of Pods: %v", err)
	}
	if after := filesOf(t, dir); !maps.Equal(before, after) {
		t.Error("it refused, and wrote something")
	}
}

// TestKubernetesKinds compares what is known of the kinds of Kubernetes with what localapi serves: their plurals, which
// of them are in a namespace, and the objects that tests create.
func TestKubernetesKinds(t *testing.T) {
	server := localapi.NewTest(t)
	_, lists, err := discovery.NewDiscoveryClientForConfigOrDie(server.RESTConfig()).ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.New(server.RESTConfig(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, incomplete := &project{}, []string{}
	for _, list := range lists {
		gv, _ := schema.ParseGroupVersion(list.GroupVersion)
		for short, group := range coreGroups {
			for _, r := range list.APIResources {
				if group != gv.Group || strings.Contains(r.Name, "/") || !slices.Contains(r.Verbs, "update") {
					continue
				}
				n, err := p.foreign(p.names(short, gv.Version, r.Kind), "", "")
				if err != nil || n.cluster == r.Namespaced || n.plural != r.Name {
					t.Errorf("%s %s: %v, %+v", gv, r.Kind, err, n)
				}
				u := &unstructured.Unstructured{}
				if err := json.Unmarshal([]byte(n.sample()), &u.Object); err != nil {
					t.Fatalf("%s: %v", r.Kind, err)
				}
				u.SetGroupVersionKind(gv.WithKind(r.Kind))
				u.SetName("in-" + gv.Version)
				if r.Namespaced {
					u.SetNamespace("default")
				}
				if err := c.Create(t.Context(), u); err != nil {
					incomplete = append(incomplete, r.Kind)
				}
			}
		}
	}
	slices.Sort(incomplete)
	const rare = "CSIStorageCapacity CertificateSigningRequest ClusterTrustBundle ControllerRevision DeviceTaintRule " +
		"Event IPAddress MutatingAdmissionPolicy MutatingAdmissionPolicyBinding PodCertificateRequest ServiceCIDR " +
		"ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding VolumeAttachment VolumeAttributesClass"
	if got := strings.Join(incomplete, " "); got != rare {
		t.Errorf("the samples of these kinds are not complete: %s, want %s", got, rare)
	}
}

// TestControllerLater: a kind without a controller gets it later. Its versions have one controller.
func TestControllerLater(t *testing.T) {
	dir := newProjectDir(t)
	o := APIOptions{Dir: dir, Group: "webapp", Version: "v1", Kind: "Book", Out: &bytes.Buffer{}, NoController: true}
	if err := CreateAPI(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	got := filesOf(t, dir)
	if got["internal/controller/book_controller.go"] != "" || strings.Contains(got[rolePath], "books") ||
		!strings.Contains(got["cmd/main.go"], "Scheme(scheme))\n	utilruntime.Must(webappv1.AddToScheme(scheme))\n") {
		t.Errorf("%s\n%s", got[rolePath], got["cmd/main.go"])
	}
	o.NoController, o.NoResource = false, true
	if err := CreateAPI(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	both := newProjectDir(t, "v1/Book")
	if got, want := filesOf(t, dir), filesOf(t, both); !maps.Equal(got, want) {
		for path := range want {
			if got[path] != want[path] {
				t.Errorf("%s:\n%s\nand at once:\n%s", path, got[path], want[path])
			}
		}
	}
	createAPI(t, dir, "v2/Book")
	o.Version = "v2"
	if err := CreateAPI(t.Context(), o); err == nil || !strings.Contains(err.Error(), "of Book exists already") {
		t.Errorf("a controller of another version: %v", err)
	}
	o.Force = true
	err := CreateAPI(t.Context(), o)
	got = filesOf(t, dir)
	if err != nil || strings.Count(got[projectFile], "controller: true") != 1 ||
		!strings.Contains(got["internal/controller/book_controller.go"], "For(&webappv2.Book{})") {
		t.Errorf("%v:\n%s", err, got[projectFile])
	}
}

// TestInherited: a further version has the plural and the scope of the first, and webhooks of it have both.
func TestInherited(t *testing.T) {
	dir := newProjectDir(t)
	o := APIOptions{
		Dir: dir, Group: "webapp", Version: "v1", Kind: "Sheep", Plural: "flock", ClusterScoped: true,
		Out: &bytes.Buffer{},
	}
	if err := CreateAPI(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	createAPI(t, dir, "v2/Sheep")
	createWebhook(t, dir, "v2/Sheep", true, false)
	got := filesOf(t, dir)
	const path = "config/crd/bases/webapp.example.com_flock.yaml"
	if !strings.Contains(got[path], "scope: Cluster\n") || strings.Count(got[path], "storage: true") != 1 ||
		!strings.Contains(got["api/v2/sheep_types.go"], ":path=flock,scope=Cluster\n") ||
		!strings.Contains(got[manifestsPath], "    - flock\n") || strings.Contains(got[manifestsPath], "sheeps") {
		t.Errorf("%s\n%s\n%s", got[path], got["api/v2/sheep_types.go"], got[manifestsPath])
	}
	o.Version, o.Plural = "v3", "sheep"
	if err := CreateAPI(t.Context(), o); err == nil || !strings.Contains(err.Error(), "have the same plural") {
		t.Errorf("with another plural: %v", err)
	}
	createAPI(t, dir, "v1/Cow")
	o.Kind, o.Plural = "Cow", ""
	if err := CreateAPI(t.Context(), o); err == nil || !strings.Contains(err.Error(), "have the same scope") {
		t.Errorf("with another scope: %v", err)
	}
}

// TestStorage: the version that is stored is moved when a version is created, or later.
func TestStorage(t *testing.T) {
	for _, later := range []bool{false, true} {
		dir := newProjectDir(t, "v1/Guestbook")
		o := APIOptions{Dir: dir, Group: "webapp", Version: "v2", Kind: "Guestbook", Out: &bytes.Buffer{}}
		if later {
			report := createAPI(t, dir, "v2/Guestbook")
			if !strings.Contains(report, "is stored in version v1 as before. flyball create api --group webapp "+
				"--version v2 --kind Guestbook --storage moves it") {
				t.Errorf("report: %s", report)
			}
		}
		o.Storage = true
		if err := CreateAPI(t.Context(), o); err != nil {
			t.Fatal(err)
		}
		createAPI(t, dir, "v3/Guestbook") // leaves it as it is
		got := filesOf(t, dir)
		definition := got["config/crd/bases/webapp.example.com_guestbooks.yaml"]
		_, v2, _ := strings.Cut(definition, "    name: v2\n")
		v2, _, _ = strings.Cut(v2, "    name: v3\n")
		if strings.Contains(got["api/v1/guestbook_types.go"], "storageversion") ||
			!strings.Contains(got["api/v2/guestbook_types.go"], "root=true\n// +kubebuilder:storageversion\n") ||
			strings.Contains(got["api/v3/guestbook_types.go"], "storageversion") ||
			!strings.Contains(v2, "storage: true") || strings.Count(definition, "storage: true") != 1 {
			t.Errorf("later: %v: %s", later, definition)
		}
	}
}

// TestGroups: the folders of a further group are named after it; in a project with multigroup, all are.
func TestGroups(t *testing.T) {
	dir := newProjectDir(t, "v1/Guestbook")
	createGroupAPI(t, dir, "stock", "v1/Guestbook")
	createAPI(t, dir, "v1/Page")
	got := filesOf(t, dir)
	for path, want := range map[string]string{
		"api/stock/v1/guestbook_types.go":                   "package v1",
		"api/v1/page_types.go":                              "package v1",
		"internal/controller/page_controller.go":            `Named("page")`,
		"internal/controller/stock/guestbook_controller.go": `Named("stock-guestbook")`,
		"config/rbac/stock_guestbook_editor_role.yaml":      "name: stock-guestbook-editor-role",
		"cmd/main.go":                                            `stockcontroller "example.com/shops/guestbook/`,
		"config/rbac/kustomization.yaml":                         "- stock_guestbook_viewer_role.yaml",
		"config/crd/bases/stock.example.com_guestbooks.yaml":     "group: stock.example.com",
		"internal/controller/stock/guestbook_controller_test.go": `stockv1 "example.com/shops/guestbook/api/stock/v1"`,
	} {
		if !strings.Contains(got[path], want) {
			t.Errorf("%s has no %s:\n%s", path, want, got[path])
		}
	}
	edit(t, dir, projectFile, "domain: example.com\nlayout", "domain: example.com\nmultigroup: true\nlayout")
	createGroupAPI(t, dir, "first", "v1/Thing")
	if _, err := os.Stat(filepath.Join(dir, "api/first/v1/thing_types.go")); err != nil {
		t.Error(err)
	}
}

// TestClusterPairs: what is replaced for kinds in no namespace stands in the templates.
func TestClusterPairs(t *testing.T) {
	all := ""
	for _, path := range templates(".") {
		all += template(path)
	}
	for i := 0; i < len(clusterPairs); i += 2 {
		if !strings.Contains(all, clusterPairs[i]) {
			t.Errorf("no template has %q", clusterPairs[i])
		}
	}
}
