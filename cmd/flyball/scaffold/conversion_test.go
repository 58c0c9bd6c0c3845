package scaffold

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/flyball-dev/flyball/client/manifest"
	"github.com/flyball-dev/flyball/deploy/deploytest"
	"github.com/flyball-dev/flyball/internal/kit"
)

// createConversion converts a kind of the group webapp between versions.
func createConversion(t *testing.T, dir, hub, kind string, spokes ...string) {
	t.Helper()
	o := WebhookOptions{
		Dir: dir, Group: "webapp", Version: hub, Kind: kind, Conversion: true, Spokes: spokes, Out: &bytes.Buffer{},
	}
	if err := CreateWebhook(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// TestVersions: a kind with fields of the user gets further versions, and the webhook that converts them, before its
// other webhooks or after them. All tests of the project pass, and what is deployed has the conversion.
func TestVersions(t *testing.T) {
	dir := newProjectDir(t, "v1alpha1/Guestbook", "v1/Category")
	edit(t, dir, "api/v1alpha1/guestbook_types.go", "type GuestbookSpec struct {\n",
		"// Style is a type of the user.\ntype Style struct {\n\tFont string `json:\"font\"`\n}\n\n"+
			"type GuestbookSpec struct {\n\t// +optional\n\tStyle Style `json:\"style,omitzero\"`\n\n"+
			"\t// since is a field of the user.\n\t// +optional\n\tSince *metav1.Time "+
			"`json:\"since,omitempty\"`\n\n")
	const copied = "func (in *GuestbookSpec) DeepCopyInto(out *GuestbookSpec) {\n	*out = *in\n"
	edit(t, dir, "api/v1alpha1/zz_generated.deepcopy.go", "	out.Spec = in.Spec\n",
		"	in.Spec.DeepCopyInto(&out.Spec)\n", copied, copied+"	out.Since = in.Since.DeepCopy()\n")
	createAPI(t, dir, "v1/Guestbook")
	createAPI(t, dir, "v2/Guestbook")
	createAPI(t, dir, "v2/Category")
	createWebhook(t, dir, "v1alpha1/Guestbook", false, true)
	createConversion(t, dir, "v1alpha1", "Guestbook", "v1", "v2")
	createWebhook(t, dir, "v1alpha1/Guestbook", true, false)
	createConversion(t, dir, "v1", "Category", "v2")
	createWebhook(t, dir, "v2/Category", true, true)
	addPlace(t, dir)
	kit.Guard(t)
	testProject(t, dir)
	got := filesOf(t, dir)
	checkGenerated(t, dir, "guestbook", "api/", "categor")
	if !strings.Contains(got["api/v2/guestbook_types.go"], "Since *metav1.Time") ||
		strings.Contains(got["api/v2/guestbook_types.go"], "storageversion") ||
		!strings.Contains(got["api/v1alpha1/guestbook_types.go"], "root=true\n// +kubebuilder:storageversion\n") {
		t.Errorf("%s\n%s", got["api/v1alpha1/guestbook_types.go"], got["api/v2/guestbook_types.go"])
	}
	if !strings.Contains(got["PROJECT"], "conversion: true\n    defaulting: true\n    spoke:\n    - v1\n    - v2\n") {
		t.Errorf("%s", got["PROJECT"])
	}
	checkDeployed(t, dir, "guestbooks.webapp.example.com", "v1 v1alpha1* v2")
	checkDeployed(t, dir, "categories.webapp.example.com", "v1* v2")
}

// TestOtherFields: the controller and the webhooks of a kind compile, and their tests pass, when the user has replaced
// the fields that its Spec and its Status began with, or has no Spec.
func TestOtherFields(t *testing.T) {
	dir := newProjectDir(t)
	for _, kind := range []string{"Room", "Label", "Badge"} {
		o := APIOptions{
			Dir: dir, Group: "webapp", Version: "v1", Kind: kind, NoController: true, Out: &bytes.Buffer{},
		}
		if err := CreateAPI(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	const copied = "	out.Spec = in.Spec\n"
	const badgeSpec = "func (in *Badge) DeepCopyInto(out *Badge) {\n	*out = *in\n	out.TypeMeta = in.TypeMeta\n" +
		"	in.ObjectMeta.DeepCopyInto(&out.ObjectMeta)\n" + copied
	const message = "	Message string `json:\"message\"`\n"
	edit(t, dir, "api/v1/room_types.go", message, "	Seats int32 `json:\"seats\"`\n", "MinLength=1", "Minimum=0",
		"MaxLength", "Maximum")
	edit(t, dir, "config/crd/bases/webapp.example.com_rooms.yaml", "              message:\n                desc",
		"              seats:\n                desc", "maxLength: 1000\n                minLength: 1\n"+
			"                type: string\n", "type: integer\n", "required:\n            - message\n",
		"required:\n            - seats\n")
	edit(t, dir, "api/v1/label_types.go", message, "	Message Text `json:\"message\"`\n", "MinLength=1",
		"MinLength=0", "// LabelSpec is", "// Text is a type of the user.\ntype Text string\n\n// LabelSpec is")
	edit(t, dir, "config/crd/bases/webapp.example.com_labels.yaml", "minLength: 1\n                type",
		"minLength: 0\n                type")
	edit(t, dir, "api/v1/badge_types.go", "	Spec BadgeSpec `json:\"spec\"`\n", "",
		"	ConfigMap string `json:\"configMap,omitempty\"`\n", "	Place string `json:\"place,omitempty\"`\n")
	edit(t, dir, "api/v1/zz_generated.deepcopy.go", badgeSpec, strings.Replace(badgeSpec, copied, "", 1))
	edit(t, dir, "config/crd/bases/webapp.example.com_badges.yaml", "        required:\n        - spec\n", "",
		"configMap:", "place:")
	createAPI(t, dir, "v2/Room")
	for _, kind := range []string{"Room", "Label", "Badge"} {
		o := APIOptions{
			Dir: dir, Group: "webapp", Version: "v1", Kind: kind, NoResource: true, Out: &bytes.Buffer{},
		}
		if err := CreateAPI(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	createWebhook(t, dir, "v1/Room", true, false)
	createWebhook(t, dir, "v1/Room", false, true)
	createConversion(t, dir, "v1", "Room", "v2")
	createWebhook(t, dir, "v1/Label", true, true)
	createWebhook(t, dir, "v1/Badge", true, true)
	for path, text := range filesOf(t, dir) {
		if strings.HasPrefix(path, "internal/") &&
			(strings.Contains(text, "Spec.Message") || strings.Contains(text, "Spec{Message:")) {
			t.Errorf("%s names the field Message:\n%s", path, text)
		}
		if strings.HasPrefix(path, "internal/controller/badge") && strings.Contains(text, "Status.") {
			t.Errorf("%s names fields of the Status:\n%s", path, text)
		}
	}
	createAPI(t, dir, "v2/Badge")
	o := WebhookOptions{
		Dir: dir, Group: "webapp", Version: "v1", Kind: "Badge", Conversion: true, Spokes: []string{"v2"},
		Out: &bytes.Buffer{},
	}
	if err := CreateWebhook(t.Context(), o); err == nil || !strings.Contains(err.Error(), "v2 has no field Spec") {
		t.Errorf("conversion of a kind without a Spec: %v", err)
	}
	kit.Guard(t)
	testProject(t, dir)
}

// addPlace gives one version of Categories a field that the hub does not have, with a test that it is not lost.
func addPlace(t *testing.T, dir string) {
	t.Helper()
	edit(t, dir, "api/v2/category_types.go", "type CategorySpec struct {\n",
		"type CategorySpec struct {\n\t// +optional\n\tPlace string `json:\"place,omitempty\"`\n\n")
	const test = `package v2

import (
	"strings"
	"testing"

	webappv1 "example.com/shops/guestbook/api/v1"
)

func TestPlace(t *testing.T) {
	err := (&Category{Spec: CategorySpec{Place: "here"}}).ConvertTo(&webappv1.Category{})
	if err == nil || !strings.Contains(err.Error(), "unknown field \"spec.place\"") {
		t.Error(err)
	}
}
`
	if err := os.WriteFile(filepath.Join(dir, "api/v2/place_test.go"), []byte(test), 0o644); err != nil {
		t.Fatal(err)
	}
}

// checkGenerated compares what create has written with what controller-gen makes of it, but for files with edits and a
// Role in front of the ClusterRole.
func checkGenerated(t *testing.T, dir string, edited ...string) {
	t.Helper()
	got := filesOf(t, dir)
	goIn(t, dir, "tool", "controller-gen", "rbac:roleName=manager-role", "crd", "webhook", "paths=./...",
		"output:crd:artifacts:config=config/crd/bases")
	goIn(t, dir, "tool", "controller-gen", "object", "paths=./...")
	for path, text := range filesOf(t, dir) {
		is := slices.ContainsFunc(edited, func(e string) bool { return strings.Contains(path, e) })
		if !is && !strings.HasSuffix(got[path], text) {
			t.Errorf("controller-gen changes %s:\n%s\nand it was\n%s", path, text, got[path])
		}
	}
}

// checkDeployed compares the versions of a definition that is deployed, the stored one with a star, and its conversion.
func checkDeployed(t *testing.T, dir, name, want string) {
	t.Helper()
	for _, o := range deploytest.Render(t, filepath.Join(dir, "config/default")) {
		if o.GetName() != name {
			continue
		}
		var d apiextensionsv1.CustomResourceDefinition
		if err := manifest.Find([]manifest.Object{o}, "CustomResourceDefinition", &d); err != nil {
			t.Fatal(err)
		}
		var versions []string
		for _, v := range d.Spec.Versions {
			versions = append(versions, v.Name+map[bool]string{true: "*"}[v.Storage])
		}
		service := d.Spec.Conversion.Webhook.ClientConfig.Service
		if got := strings.Join(versions, " "); got != want || service.Namespace != "guestbook-system" ||
			service.Name != "guestbook-webhook-service" {
			t.Errorf("%s: %s, converted by %s/%s", name, got, service.Namespace, service.Name)
		}
		return
	}
	t.Errorf("%s is not deployed", name)
}

// TestSpokes: what a conversion is refused for.
func TestSpokes(t *testing.T) {
	dir := newProjectDir(t, "v1/Guestbook", "v2/Guestbook", "v3/Guestbook")
	createConversion(t, dir, "v1", "Guestbook", "v2")
	for _, c := range []struct {
		hub, spoke, want string
	}{
		{"v1", "", "--conversion and --spoke are needed together"},
		{"v1", "v1", "no other version v1"},
		{"v1", "v4", "no other version v4"},
		{"v2", "v3", "the hub of Guestbook is version v1"},
	} {
		o := WebhookOptions{Dir: dir, Group: "webapp", Version: c.hub, Kind: "Guestbook", Conversion: true}
		if c.spoke != "" {
			o.Spokes = []string{c.spoke}
		}
		o.Out = &bytes.Buffer{}
		if err := CreateWebhook(t.Context(), o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v", c, err)
		}
	}
}

// TestSampleVersions: the second version in the folder project, by which its conversion is compiled and tested, is the
// first one under another name.
func TestSampleVersions(t *testing.T) {
	for _, file := range []string{"doc.go", "groupversion_info.go", "gizmo_types.go", "zz_generated.deepcopy.go"} {
		first, err := os.ReadFile("project/api/v1alpha1/" + file)
		if err != nil {
			t.Fatal(err)
		}
		second, err := os.ReadFile("project/api/v1beta7/" + file)
		if err != nil {
			t.Fatal(err)
		}
		want, err := finish(file, strings.ReplaceAll(fence.ReplaceAllString(string(first), ""), "v1alpha1", "v1beta7"))
		if err != nil || string(second) != string(want) {
			t.Errorf("%s of v1beta7 is not that of v1alpha1 (%v)", file, err)
		}
	}
}
