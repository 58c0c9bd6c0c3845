package scaffold

import (
	"bytes"
	"context"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/internal/kit"
)

// root is the folder of this module.
const root = "../../.."

// newProjectDir makes a project in a new folder, with kinds of the group webapp.
func newProjectDir(t *testing.T, kinds ...string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	var out bytes.Buffer
	o := InitOptions{Dir: dir, Module: "example.com/shops/guestbook", Source: root, Out: &out}
	if err := Init(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "by a folder of this machine: make image") {
		t.Errorf("report:\n%s", &out)
	}
	for _, kind := range kinds {
		createAPI(t, dir, kind)
	}
	return dir
}

// createAPI adds a kind, named "version/Kind", and returns the report.
func createAPI(t *testing.T, dir, kind string) (report string) {
	t.Helper()
	return createGroupAPI(t, dir, "webapp", kind)
}

func createGroupAPI(t *testing.T, dir, group, kind string) (report string) {
	t.Helper()
	version, kind, _ := strings.Cut(kind, "/")
	var out bytes.Buffer
	if err := CreateAPI(t.Context(), APIOptions{
		Dir: dir, Group: group, Version: version, Kind: kind, Out: &out,
	}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// filesOf returns the files below a folder.
func filesOf(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		all[filepath.ToSlash(rel)] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// createWebhook adds webhooks to a kind, named "version/Kind", and returns the report.
func createWebhook(t *testing.T, dir, kind string, defaulting, validation bool) (report string) {
	t.Helper()
	version, kind, _ := strings.Cut(kind, "/")
	var out bytes.Buffer
	if err := CreateWebhook(t.Context(), WebhookOptions{
		Dir: dir, Group: "webapp", Version: version, Kind: kind, Defaulting: defaulting, Validation: validation,
		Out: &out,
	}); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestProject makes a project with all there is: kinds of two groups, one of them in no namespace, webhooks and
// controllers of kinds of Kubernetes and of another project, and files that the user edits between. It vets it and runs
// its tests. The names of the operator that the templates are made of are nowhere in it.
func TestProject(t *testing.T) {
	dir := newProjectDir(t, "v1/Guestbook", "v1/Category", "v1beta1/Box")
	createWebhook(t, dir, "v1/Guestbook", false, true)
	addQuota(t, dir)
	createWebhook(t, dir, "v1/Guestbook", true, false)
	createWebhook(t, dir, "v1/Category", false, true)
	createWebhook(t, dir, "v1beta1/Box", true, false)
	addUserRules(t, dir)
	const multus = "github.com/flyball-dev/flyball/examples/operators/ipam/multus"
	for _, o := range []APIOptions{
		{Group: "stock", Version: "v1", Kind: "Shelf", ClusterScoped: true},
		{Group: "stock", Version: "v1", Kind: "Guestbook"}, // the kind's name of the other group
		{Group: "apps", Version: "v1", Kind: "Deployment", NoResource: true},
		{Group: "core", Version: "v1", Kind: "Node", NoResource: true},
		{
			Group: "k8s", Version: "v1", Kind: "NetworkAttachmentDefinition", NoResource: true, ExternalPath: multus,
			ExternalDomain: "cni.cncf.io", Plural: "network-attachment-definitions",
		},
	} {
		o.Dir, o.Out = dir, &bytes.Buffer{}
		if err := CreateAPI(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range []WebhookOptions{
		{Group: "stock", Version: "v1", Kind: "Shelf", Defaulting: true, Validation: true},
		{Group: "core", Version: "v1", Kind: "Pod", Defaulting: true, Validation: true},
		{Group: "k8s", Version: "v1", Kind: "NetworkAttachmentDefinition", Validation: true},
	} {
		o.Dir, o.Out = dir, &bytes.Buffer{}
		if err := CreateWebhook(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	definitions := filepath.Join(root, "examples/operators/ipam/manifests/multus")
	if err := os.CopyFS(filepath.Join(dir, "config/crd/external"), os.DirFS(definitions)); err != nil {
		t.Fatal(err)
	}
	for line, want := range map[string]int{
		"options.Webhook.Certificates = ": 1, "WebhookWithManager(mgr)": 6, ").SetupWithManager(mgr)": 8,
		"AddToScheme(scheme)": 5, "Namespace: operatorNamespace()": 2, "func operatorNamespace()": 1,
	} {
		if got := strings.Count(filesOf(t, dir)["cmd/main.go"], line); got != want {
			t.Errorf("cmd/main.go has %q %d times, want %d", line, got, want)
		}
	}
	ours := []string{"gizmo", "sample-operator", "flyball.example", "samplev1", "v1alpha1", "flyball:end"}
	for path, text := range filesOf(t, dir) {
		for _, word := range ours {
			if strings.Contains(strings.ToLower(path+text), word) {
				t.Errorf("%s has %q", path, word)
			}
		}
	}
	kit.Guard(t)
	testProject(t, dir)
	checkGenerated(t, dir, "webapp.example.com_guestbooks.yaml")
}

// addQuota makes the validator of Guestbooks one that reads what there is, with a test.
func addQuota(t *testing.T, dir string) {
	t.Helper()
	edit(t, dir, "internal/webhook/v1/guestbook_webhook.go",
		"	\"strings\"\n", "	\"errors\"\n	\"strings\"\n",
		"	\"github.com/flyball-dev/flyball/manager/ctrl\"\n",
		"	\"github.com/flyball-dev/flyball/client\"\n	\"github.com/flyball-dev/flyball/manager/ctrl\"\n",
		"&GuestbookValidator{}", "&GuestbookValidator{mgr.GetClient()}",
		"type GuestbookValidator struct{}", "type GuestbookValidator struct{ client.Reader }",
		"func (*GuestbookValidator) ValidateCreate(_ context.Context, obj *webappv1.Guestbook) (",
		"func (v *GuestbookValidator) ValidateCreate(ctx context.Context, obj *webappv1.Guestbook) (",
		"	return nil, validateGuestbook(obj)\n}\n\n// ValidateUpdate",
		"	var all webappv1.GuestbookList\n	if err := v.List(ctx, &all); err != nil || len(all.Items) > 1 {\n"+
			"		return nil, errors.Join(err, errors.New(\"two are enough\"))\n	}\n"+
			"	return nil, validateGuestbook(obj)\n}\n\n// ValidateUpdate")
	const test = `package v1_test

import (
	"strings"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/client"

	"example.com/shops/guestbook/internal/harness"
)

func TestQuota(t *testing.T) {
	harness.Webhooks(t, func(t *testing.T, c client.Client) {
		for _, name := range []string{"a", "b", "c"} {
			obj := newGuestbook("hello")
			obj.Name = name
			err := c.Create(t.Context(), obj)
			if refused := err != nil && strings.Contains(err.Error(), "two are enough"); refused != (name == "c") {
				t.Errorf("%s: %v", name, err)
			}
			time.Sleep(time.Second) // of virtual time, in which the cache gets to know it
		}
	})
}
`
	if err := os.WriteFile(filepath.Join(dir, "internal/webhook/v1/quota_test.go"), []byte(test), 0o644); err != nil {
		t.Fatal(err)
	}
}

// addUserRules adds what a user would: a rule in CEL with tests that it is evaluated, and a Role in front of the
// ClusterRole.
func addUserRules(t *testing.T, dir string) {
	t.Helper()
	edit(t, dir, "config/crd/bases/webapp.example.com_guestbooks.yaml", "                maxLength: 1000\n",
		"                maxLength: 1000\n                x-kubernetes-validations:\n"+
			"                - rule: self != 'forbidden'\n                  message: not this\n")
	edit(t, dir, rolePath, "---\n", "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n"+
		"  name: manager-role\n  namespace: system\nrules: []\n---\n")
	const test = `
import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	webappv1 "example.com/shops/guestbook/api/v1"
	"example.com/shops/guestbook/internal/harness"
	"github.com/flyball-dev/flyball/client"
)

func TestRule(t *testing.T) {
	harness.CALL, func(t *testing.T, c client.Client) {
		obj := &webappv1.Guestbook{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"},
			Spec:       webappv1.GuestbookSpec{Message: "forbidden"},
		}
		if err := c.Create(t.Context(), obj); err == nil || !strings.Contains(err.Error(), "not this") {
			t.Errorf("against the rule: %v", err)
		}
	})
}
`
	for path, call := range map[string]string{
		"internal/webhook/v1": "Webhooks(t", "internal/controller": "Run(t, setupGuestbook",
	} {
		pkg := strings.Replace(filepath.Base(path), "v1", "v1_test", 1)
		text := "package " + pkg + "\n" + strings.Replace(test, "CALL", call, 1)
		if err := os.WriteFile(filepath.Join(dir, path, "rule_test.go"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// TestTwice: a kind that is created again leaves the project as it is, with the user's changes.
func TestTwice(t *testing.T) {
	dir := newProjectDir(t, "v1/Guestbook", "v1/Category")
	changed := filepath.Join(dir, "internal/controller/guestbook_controller.go")
	if err := os.WriteFile(changed, []byte("package controller\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	before := filesOf(t, dir)
	o := APIOptions{Dir: dir, Group: "webapp", Version: "v1", Kind: "Guestbook", Out: &bytes.Buffer{}}
	if err := CreateAPI(t.Context(), o); err == nil || !strings.Contains(err.Error(), "exists already") {
		t.Errorf("again: %v", err)
	}
	// Without its record, as in a project that was written by hand.
	text := strings.ReplaceAll(before[projectFile], "kind: Guestbook", "kind: Other")
	if err := os.WriteFile(filepath.Join(dir, projectFile), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	report := createAPI(t, dir, "v1/Guestbook")
	if !strings.Contains(report, "guestbook_controller.go exists and is kept as it is; --force replaces it") {
		t.Errorf("report:\n%s", report)
	}
	after := filesOf(t, dir)
	delete(before, projectFile)
	delete(after, projectFile)
	if !maps.Equal(before, after) {
		t.Errorf("files changed; report:\n%s", report)
	}
	o.Force = true
	if err := CreateAPI(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if text := filesOf(t, dir)["internal/controller/guestbook_controller.go"]; !strings.Contains(text, "Reconcile(") {
		t.Errorf("with --force: %s", text)
	}
}

// TestMarkersAreGone: without its markers, cmd/main.go gets the same lines, beside those that stand there. What has no
// place is printed, and everything else is done.
func TestMarkersAreGone(t *testing.T) {
	var mains, reports []string
	for _, edits := range [][]string{
		{"", ""},
		{"	// +kubebuilder:scaffold:", "	// ", "Failed to create the manager", "No manager"},
		{"	// +kubebuilder:scaffold:", "	// ", "func main() {", "func main() { run() }\n\nfunc run() {"},
	} {
		dir := newProjectDir(t)
		main := filepath.Join(dir, "cmd/main.go")
		text := strings.NewReplacer(edits...).Replace(filesOf(t, dir)["cmd/main.go"])
		if err := os.WriteFile(main, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		reports = append(reports, createAPI(t, dir, "v1/Guestbook")+createWebhook(t, dir, "v1/Guestbook", true, true))
		mains = append(mains, filesOf(t, dir)["cmd/main.go"])
	}
	for _, line := range strings.Split(mains[0], "\n") {
		line = strings.Replace(line, "Failed to create the manager", "No manager", 1)
		if !strings.Contains(line, "scaffold:") && !strings.Contains(mains[1], line) {
			t.Errorf("without markers, main.go does not have %q:\n%s", line, mains[1])
			break
		}
	}
	if strings.Contains(reports[0]+reports[1], "add them yourself") {
		t.Errorf("reports:\n%s\n%s", reports[0], reports[1])
	}
	want := "cmd/main.go has lost the place for these lines: add them yourself:\n\n" +
		"if err := (&controller.GuestbookReconciler{\n"
	if !strings.Contains(reports[2], want) || !strings.Contains(mains[2], "webappv1.AddToScheme(scheme)") {
		t.Errorf("without main: %s\n%s", reports[2], mains[2])
	}
}

// TestNothingIsHalfWritten: a command that fails, or that is interrupted, leaves the project as it was.
func TestNothingIsHalfWritten(t *testing.T) {
	dir := newProjectDir(t)
	o := APIOptions{Dir: dir, Group: "webapp", Version: "v1", Kind: "Guestbook", Out: &bytes.Buffer{}}
	before := filesOf(t, dir)
	interrupted, cancel := context.WithCancel(t.Context())
	cancel()
	if err := CreateAPI(interrupted, o); err == nil {
		t.Error("it was interrupted, and has no error")
	}
	if after := filesOf(t, dir); !maps.Equal(before, after) {
		t.Error("interrupted, it changed files")
	}
	// A file where a folder must be, found out after other files were written.
	if err := os.WriteFile(filepath.Join(dir, "internal"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	before = filesOf(t, dir)
	err := CreateAPI(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "internal") {
		t.Errorf("a file in the way: %v", err)
	}
	if after := filesOf(t, dir); !maps.Equal(before, after) {
		t.Error("it failed, and changed files")
	}
	if _, err := os.Stat(filepath.Join(dir, "api")); err == nil {
		t.Error("it failed, and left folders")
	}
}
