package scaffold

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/deploy/deploytest"
	"github.com/flyball-dev/flyball/internal/kit"
)

// edit replaces text in a file of a project.
func edit(t *testing.T, dir, path string, pairs ...string) {
	t.Helper()
	full := filepath.Join(dir, path)
	old, err := os.ReadFile(full)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(pairs...).Replace(string(old))
	if text == string(old) {
		t.Fatalf("%s has no %q", path, pairs[0])
	}
	if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestWebhookAfterEdits: what users have added to kustomization.yaml, and what stands there in comments, neither breaks
// nor hides what is inserted.
func TestWebhookAfterEdits(t *testing.T) {
	kit.Guard(t)
	const path = "config/default/kustomization.yaml"
	const mine = "- path: mine.yaml\n  target:\n    kind: Deployment\n"
	const indented = "  - path: mine.yaml\n    target:\n      kind: Deployment\n"
	const above = "# +kubebuilder:scaffold:defaultkustomizeresource\n"
	const at = "# +kubebuilder:scaffold:defaultkustomizepatch\n"
	for name, pairs := range map[string][]string{
		"patches":  {at, "patches:\n" + mine + at},
		"after":    {at, at + "patches: # mine\n# indented\n" + indented},
		"none":     {at, "patches: []\n" + at},
		"comments": {above, "#- ../webhook\n#patches:\n#- path: manager_webhook_patch.yaml\n#  target:\n" + above},
	} {
		dir := newProjectDir(t, "v1/Guestbook")
		edit(t, dir, path, pairs...)
		if err := os.WriteFile(filepath.Join(dir, "config/default/mine.yaml"),
			[]byte("- op: replace\n  path: /spec/replicas\n  value: 3\n"), 0o644); err != nil {
			t.Fatal(err)
		}
		createWebhook(t, dir, "v1/Guestbook", true, true)
		text := filesOf(t, dir)[path]
		found := ""
		for _, o := range deploytest.Render(t, filepath.Join(dir, "config/default")) {
			if o.GetKind() == "Deployment" {
				y, _ := o.MarshalJSON()
				found += string(y)
			}
			found += " " + o.GetName()
		}
		if !strings.Contains(found, `"containerPort":9443`) || !strings.Contains(found, "guestbook-webhook-service") ||
			strings.Contains(found, `"replicas":3`) != strings.Contains(text, "mine.yaml") {
			t.Errorf("%s:\n%s\n%s", name, text, found)
		}
	}
}

// TestFurtherWebhook: a webhook that is added to another one keeps that, and what the user has written.
func TestFurtherWebhook(t *testing.T) {
	const path, test = "internal/webhook/v1/guestbook_webhook.go", "internal/webhook/v1/guestbook_webhook_test.go"
	const mine = "\nfunc mine(s string) string { return s + \"no spaces\" }\n"
	for name, c := range map[string]struct {
		defaulting bool
		edits      map[string][]string
		want       []string
	}{
		"as it was":        {defaulting: true},
		"validation first": {},
		"edited": {true, map[string][]string{
			path: {"\"hello\"", "mine(\"hi\")", "\nfunc Setup", mine + "\nfunc Setup"},
			test: {"func newGuestbook", "func another(message string) any { return message }\n\nfunc newGuestbook"},
		}, []string{"mine(\"hi\")", mine}},
		"other chain": {true, map[string][]string{
			path: {
				"	return ctrl.NewWebhookManagedBy(mgr).For(&webappv1.Guestbook{}).\n",
				"	b := ctrl.NewWebhookManagedBy(mgr)\n	return b.For(&webappv1.Guestbook{}).\n",
			},
		}, []string{"b := ctrl"}},
		"helper gone": {true, map[string][]string{
			test: {"newGuestbook(", "other("},
		}, nil},
	} {
		dir := newProjectDir(t, "v1/Guestbook")
		createWebhook(t, dir, "v1/Guestbook", c.defaulting, !c.defaulting)
		for file, pairs := range c.edits {
			edit(t, dir, file, pairs...)
		}
		report := createWebhook(t, dir, "v1/Guestbook", !c.defaulting, c.defaulting)
		got := filesOf(t, dir)
		want := append(c.want, "WithDefaulter(&GuestbookDefaulter{}).\n", "WithValidator(&GuestbookValidator{}).\n",
			") ValidateUpdate(", ") Default(", "var _ webhook.Validator[", "// +kubebuilder:webhook:path=/validate-")
		for _, want := range want {
			if strings.Count(got[path], want) != 1 {
				t.Errorf("%s: %q is not in the file once:\n%s", name, want, got[path])
			}
		}
		if strings.Count(got[test], "func TestValidateGuestbook(") != 1 ||
			strings.Count(got[test], "func newGuestbook(") != 1 || strings.Contains(report, "yourself") {
			t.Errorf("%s: %s\n%s", name, report, got[test])
		}
		if !strings.Contains(got["PROJECT"], "defaulting: true\n    validation: true\n") ||
			strings.Count(got[manifestsPath], "\nkind: ") != 2 {
			t.Errorf("%s: %s\n%s", name, got["PROJECT"], got[manifestsPath])
		}
	}
	dir := newProjectDir(t, "v1/Guestbook")
	createWebhook(t, dir, "v1/Guestbook", false, true)
	edit(t, dir, path, "it has spaces around it", "no spaces")
	o := WebhookOptions{
		Dir: dir, Group: "webapp", Version: "v1", Kind: "Guestbook", Defaulting: true, Force: true,
		Out: &bytes.Buffer{},
	}
	if err := CreateWebhook(t.Context(), o); err != nil || strings.Contains(filesOf(t, dir)[path], "no spaces") {
		t.Errorf("with --force: %v\n%s", err, filesOf(t, dir)[path])
	}
	o.Force, o.Kind = false, "Guestbook"
	edit(t, dir, path, "package v1", "package v1 {")
	edit(t, dir, "PROJECT", "    defaulting: true\n", "")
	if err := CreateWebhook(t.Context(), o); err == nil || !strings.Contains(err.Error(), path+":1:12") {
		t.Errorf("a file that is no Go: %v", err)
	}
}

// TestFurtherRole: controller-gen writes a Role beside the ClusterRole for markers with a namespace. It stays.
func TestFurtherRole(t *testing.T) {
	const further = "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata:\n  name: manager-role\n" +
		"  namespace: system\nrules: [] # mine\n"
	for _, first := range []bool{true, false} {
		dir := newProjectDir(t)
		text := filesOf(t, dir)[rolePath] + further
		if first {
			text = further + filesOf(t, dir)[rolePath]
		}
		if err := os.WriteFile(filepath.Join(dir, rolePath), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		createAPI(t, dir, "v1/Guestbook")
		got := filesOf(t, dir)[rolePath]
		if !strings.Contains(got, further) || strings.Count(got, "---\n") != 2 ||
			!strings.Contains(got, "kind: ClusterRole\n") || !strings.Contains(got, "  - guestbooks/status\n") {
			t.Errorf("role.yaml:\n%s", got)
		}
	}
}

// TestUserRoles: the editor role is enough for kubectl edit.
func TestUserRoles(t *testing.T) {
	dir := newProjectDir(t, "v1/Guestbook")
	text := filesOf(t, dir)["config/rbac/guestbook_editor_role.yaml"]
	if !strings.Contains(text, "verbs: [create, delete, deletecollection, get, list, patch, update, watch]") ||
		strings.Contains(text, "\n    rbac.authorization.k8s.io/aggregate") {
		t.Errorf("editor role:\n%s", text)
	}
	if text := filesOf(t, dir)["README.md"]; !strings.Contains(text, "make image push deploy IMG=") {
		t.Errorf("README.md:\n%s", text)
	}
}

// TestPlace: files keep their modes, and symbolic links stay.
func TestPlace(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "file"), []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("file", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	c := &change{dir: dir}
	c.put("link", []byte("new"), "extend")
	if err := c.commit(); err != nil {
		t.Fatal(err)
	}
	link, err := os.Readlink(filepath.Join(dir, "link"))
	info, statErr := os.Stat(filepath.Join(dir, "file"))
	if err != nil || statErr != nil || link != "file" || info.Mode().Perm() != 0o600 ||
		filesOf(t, dir)["file"] != "new" {
		t.Errorf("%v, %v, %v, link to %q", err, statErr, info, link)
	}
}

// TestRevertFails: the files of before are not deleted, and the error tells where they are.
func TestRevertFails(t *testing.T) {
	cause, second := errors.New("disk full"), errors.New("not undone")
	undo := []func() error{func() error { return second }}
	failed, err := revert("/backup", cause, undo)
	if !failed || !errors.Is(err, cause) || !errors.Is(err, second) || !strings.Contains(err.Error(), "/backup") {
		t.Errorf("%v, %v", failed, err)
	}
	if failed, err := revert("/backup", cause, nil); failed || !errors.Is(err, cause) {
		t.Errorf("%v, %v", failed, err)
	}
}
