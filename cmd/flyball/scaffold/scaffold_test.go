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

// TestProject makes a project with three kinds and their webhooks, vets it and runs its tests. The names of the
// operator that the templates are made of are nowhere in it.
func TestProject(t *testing.T) {
	dir := newProjectDir(t, "v1/Guestbook", "v1/Category", "v1beta1/Box")
	createWebhook(t, dir, "v1/Guestbook", true, true)
	createWebhook(t, dir, "v1/Category", false, true)
	createWebhook(t, dir, "v1beta1/Box", true, false)
	addRules(t, dir)
	for line, want := range map[string]int{
		"options.Webhook.Certificates = ": 1, "WebhookWithManager(mgr)": 3, "SetupWithManager(mgr)": 3,
		"AddToScheme(scheme)": 3, // the kinds have two versions, and client-go has its own
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
}

// addRules adds what a user would: a rule in CEL with tests that it is evaluated, and a Role in front of the
// ClusterRole.
func addRules(t *testing.T, dir string) {
	t.Helper()
	edit(t, dir, "config/crd/bases/webapp.example.com_guestbooks.yaml", "                maxLength: 1000\n",
		"                maxLength: 1000\n                x-kubernetes-validations:\n"+
			"                - rule: self != 'forbidden'\n                  message: not this\n")
	edit(t, dir, rolePath, "---\n", "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n"+
		"  name: manager-role\n  namespace: system\nrules: []\n---\n")
	const test = `
import (
	"context"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	webappv1 "example.com/shops/guestbook/api/v1"
	"github.com/flyball-dev/flyball/client"
)

func TestRule(t *testing.T) {
	run(t, SETUP, func(ctx context.Context, c client.Client) {
		obj := &webappv1.Guestbook{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "a"},
			Spec:       webappv1.GuestbookSpec{Message: "forbidden"},
		}
		if err := c.Create(ctx, obj); err == nil || !strings.Contains(err.Error(), "not this") {
			t.Errorf("against the rule: %v", err)
		}
	})
}
`
	for path, setup := range map[string]string{
		"internal/webhook/v1": "SetupGuestbookWebhookWithManager", "internal/controller": "setupGuestbook",
	} {
		text := "package " + filepath.Base(path) + "\n" + strings.Replace(test, "SETUP", setup, 1)
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

// TestMarkersAreGone: what cannot be inserted is printed, and everything else is done.
func TestMarkersAreGone(t *testing.T) {
	dir := newProjectDir(t)
	main := filepath.Join(dir, "cmd/main.go")
	text, err := os.ReadFile(main)
	if err != nil {
		t.Fatal(err)
	}
	const builder = "	// +kubebuilder:scaffold:builder\n"
	if err := os.WriteFile(main, bytes.Replace(text, []byte(builder), nil, 1), 0o644); err != nil {
		t.Fatal(err)
	}
	report := createAPI(t, dir, "v1/Guestbook")
	if want := "cmd/main.go has no marker +kubebuilder:scaffold:builder: add these lines yourself:\n\n" +
		"	if err := (&controller.GuestbookReconciler{\n"; !strings.Contains(report, want) {
		t.Errorf("report:\n%s", report)
	}
	text, err = os.ReadFile(main)
	if err != nil || !strings.Contains(string(text), "webappv1.AddToScheme(scheme)") ||
		strings.Contains(string(text), "Reconciler") {
		t.Errorf("%v, main.go:\n%s", err, text)
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
