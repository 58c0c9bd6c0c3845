package scaffold

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/internal/plural"
)

func TestInitRefuses(t *testing.T) {
	for _, c := range []struct {
		change func(*InitOptions)
		file   string
		want   string
	}{
		{change: func(o *InitOptions) { o.Module = "" }, want: "--module is needed"},
		{change: func(o *InitOptions) { o.Module = "a b" }, want: `--module "a b"`},
		{change: func(o *InitOptions) { o.Module = "/guestbook" }, want: "--module"},
		{change: func(o *InitOptions) { o.Module = "example.com/guestbook/" }, want: "--module"},
		{change: func(o *InitOptions) { o.Module = "guestbook" }, want: "--domain is needed"},
		{change: func(o *InitOptions) { o.Module = "github.com/me/guestbook" }, want: "--domain is needed"},
		{change: func(o *InitOptions) { o.Module = "example.com/guest_book" }, want: "--project-name"},
		{change: func(o *InitOptions) { o.ProjectName = "123" }, want: `--project-name "123"`},
		{change: func(o *InitOptions) { o.ProjectName = "3d" }, want: `--project-name "3d"`},
		{change: func(o *InitOptions) { o.ProjectName = "1e3" }, want: `--project-name "1e3"`},
		{change: func(o *InitOptions) { o.ProjectName = "true" }, want: `--project-name "true"`},
		{change: func(o *InitOptions) { o.ProjectName = "null" }, want: `--project-name "null"`},
		{change: func(o *InitOptions) { o.ProjectName = "yes" }, want: `--project-name "yes"`},
		{change: func(o *InitOptions) { o.ProjectName = strings.Repeat("a", 40) }, want: "more than 28 characters"},
		{change: func(o *InitOptions) { o.Domain = "Example.com" }, want: `--domain "Example.com"`},
		{change: func(o *InitOptions) { o.Domain = "apps.k8s.io" }, want: "belong to Kubernetes"},
		{change: func(o *InitOptions) { o.Source = "" }, want: "is not a release"},
		{change: func(o *InitOptions) { o.Source = "." }, want: "--flyball-source"},
		{file: "main.go", want: "is not empty: it has main.go"},
		{file: "PROJECT", want: "is a project already"},
	} {
		o := InitOptions{Dir: t.TempDir(), Module: "example.com/guestbook", Flyball: "(devel)", Source: root}
		o.Out = &bytes.Buffer{}
		files := 0
		if c.file != "" {
			files = 1
			if err := os.WriteFile(filepath.Join(o.Dir, c.file), nil, 0o644); err != nil {
				t.Fatal(err)
			}
		} else {
			c.change(&o)
		}
		if err := Init(t.Context(), o); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
		if got := filesOf(t, o.Dir); len(got) != files {
			t.Errorf("%s: it wrote %d files", c.want, len(got)-files)
		}
	}
}

// TestInitKeeps: a new repository's files stay as they are.
func TestInitKeeps(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "README.md"), []byte("mine"), 0o644); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	o := InitOptions{Dir: dir, Module: "example.com/guestbook/v2", Flyball: "v1.2.3", Out: &out}
	if err := Init(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	got := filesOf(t, dir)
	if strings.Contains(out.String(), "--force") {
		t.Errorf("init has no --force; report:\n%s", &out)
	}
	if got["README.md"] != "mine" || !strings.Contains(out.String(), "README.md exists and is kept") {
		t.Errorf("README.md is %q; report:\n%s", got["README.md"], &out)
	}
	for _, want := range []string{"module example.com/guestbook/v2\n", "github.com/flyball-dev/flyball v1.2.3\n"} {
		if !strings.Contains(got["go.mod"], want) || strings.Contains(got["go.mod"], "replace") {
			t.Errorf("go.mod without %q:\n%s", want, got["go.mod"])
		}
	}
	if !strings.Contains(got["PROJECT"], "projectName: guestbook\n") {
		t.Errorf("PROJECT:\n%s", got["PROJECT"])
	}
}

func TestCreateAPIRefuses(t *testing.T) {
	dir := newProjectDir(t, "v1/Guestbook")
	mine := []byte("package v1\n\ntype Mine int\n")
	if err := os.WriteFile(filepath.Join(dir, "api/v1/mine.go"), mine, 0o644); err != nil {
		t.Fatal(err)
	}
	before := filesOf(t, dir)
	for _, c := range []struct{ group, version, kind, plural, want string }{
		{"", "v1", "Book", "", "are needed"},
		{"webapp", "", "Book", "", "are needed"},
		{"webapp", "v1", "", "", "are needed"},
		{"Webapp", "v1", "Book", "", `--group "Webapp"`},
		{"web_app", "v1", "Book", "", `--group "web_app"`},
		{"webapp.example.com", "v1", "Book", "", "leave out example.com, which is added to it"},
		{"webhook", "v1", "Book", "", `--group "webhook"`},
		{"web-hook", "v1", "Book", "", `--group "web-hook"`},
		{"webapp", "1", "Book", "", `--version "1"`},
		{"webapp", "v0", "Book", "", `--version "v0"`},
		{"webapp", "v1gamma1", "Book", "", `--version "v1gamma1"`},
		{"webapp", "v1", "book", "", `--kind "book"`},
		{"webapp", "v1", "Guest-Book", "", `--kind "Guest-Book"`},
		{"webapp", "v1", "BookList", "", "a list of others"},
		{"webapp", "v1", "GroupVersion", "", "GroupVersion would be declared in api/v1/groupversion_info.go and in"},
		{"webapp", "v1", "Main", "", "TestMain would be declared in internal/controller/main_controller_test.go"},
		{"webapp", "v1", "GuestbookSpec", "", "GuestbookSpec would be declared in api/v1/guestbook_types.go and in"},
		{"webapp", "v1", "GuestbookStatus", "", "GuestbookStatus would be declared in"},
		{"webapp", "v1", "InvalidGuestbook", "", "TestInvalidGuestbook would be declared in"},
		{"webapp", "v1", "GuestBook", "", "the kind Guestbook of this group has the same singular or plural"},
		{"webapp", "v1", "Book", "guestbooks", "the kind Guestbook of this group has the same singular or plural"},
		{"webapp", "v1", "Guestbooks", "", "the kind Guestbook of this group has the same singular or plural"},
		{"webapp", "v1", "Book", "guestbook", "the kind Guestbook of this group has the same singular or plural"},
		{"webapp", "v1", "Mine", "", "Mine would be declared in api/v1/mine.go and in api/v1/mine_types.go"},
		{"webapp", "v1", strings.Repeat("B", 64), "", "more than 63"},
		{"webapp", "v1", "Book", "Books", `--plural "Books"`},
		{"webapp", "v1", "Guestbook", "", "exists already"},
	} {
		err := CreateAPI(t.Context(), APIOptions{
			Dir: dir, Group: c.group, Version: c.version, Kind: c.kind, Plural: c.plural, Out: &bytes.Buffer{},
		})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	if after := filesOf(t, dir); !maps.Equal(after, before) {
		t.Errorf("it wrote %d files", len(after)-len(before))
	}
	// The type TestReconciler of the one, and the test of that name of the other.
	createAPI(t, dir, "v1/Reconciler")
	o := APIOptions{Dir: dir, Group: "webapp", Version: "v1", Kind: "Test", Out: &bytes.Buffer{}}
	if err := CreateAPI(t.Context(), o); err == nil || !strings.Contains(err.Error(), "TestReconciler would be") {
		t.Errorf("Reconciler and Test: %v", err)
	}
	empty := t.TempDir()
	o = APIOptions{Dir: empty, Group: "webapp", Version: "v1", Kind: "Book", Out: &bytes.Buffer{}}
	if err := CreateAPI(t.Context(), o); err == nil || !strings.Contains(err.Error(), "has no go.mod") {
		t.Errorf("outside of a project: %v", err)
	}
	if err := os.WriteFile(filepath.Join(empty, "go.mod"), []byte("module x\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := CreateAPI(t.Context(), o); err == nil || !strings.Contains(err.Error(), "has no file PROJECT") {
		t.Errorf("in another module: %v", err)
	}
	o.Dir = kubebuilderProject(t)
	w := WebhookOptions{Dir: o.Dir, Group: "shop", Version: "v1", Kind: "Cart", Defaulting: true, Out: &bytes.Buffer{}}
	for _, err := range []error{CreateAPI(t.Context(), o), CreateWebhook(t.Context(), w)} {
		if err == nil || !strings.Contains(err.Error(), "run flyball migrate first") {
			t.Errorf("in a project of kubebuilder: %v", err)
		}
	}
}

func TestNames(t *testing.T) {
	for _, c := range []struct{ group, kind, alias, plural, kinds string }{
		{"webapp", "Guestbook", "webappv1", "guestbooks", "Guestbooks"},
		{"web-app.test", "GuestBook", "webapptestv1", "guestbooks", "GuestBooks"},
		{"core", "Category", "apicorev1", "categories", "Categories"},
		{"meta", "Box", "apimetav1", "boxes", "Boxes"},
		{"3d", "Day", "api3dv1", "days", "Days"},
		{"webapp", "Mesh", "webappv1", "meshes", "Meshes"},
		{"webapp", "DNS", "webappv1", "dnses", "DNSes"},
	} {
		n := names{shortGroup: c.group, version: "v1", kind: c.kind, plural: plural.Of(c.kind)}
		if aliasOf(n.shortGroup, n.version) != c.alias || n.plural != c.plural || n.kinds() != c.kinds {
			t.Errorf("%s %s: %s, %s, %s", c.group, c.kind, aliasOf(n.shortGroup, n.version), n.plural, n.kinds())
		}
	}
}

func TestCreateWebhookRefuses(t *testing.T) {
	dir := newProjectDir(t, "v1/Guestbook", "v1/Book")
	createWebhook(t, dir, "v1/Book", true, false)
	before := filesOf(t, dir)
	for _, c := range []struct {
		version, kind string
		defaulting    bool
		want          string
	}{
		{"v1", "Guestbook", false, "--conversion is needed"},
		{"v1", "", true, "are needed"},
		{"v1", "Page", true, "the project has no kind Page in webapp.example.com v1"},
		{"v2", "Book", true, "the project has no kind Book in webapp.example.com v2"},
		{"v1", "Book", true, "these webhooks of Book exist already"},
	} {
		err := CreateWebhook(t.Context(), WebhookOptions{
			Dir: dir, Group: "webapp", Version: c.version, Kind: c.kind, Defaulting: c.defaulting, Out: &bytes.Buffer{},
		})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	if after := filesOf(t, dir); len(after) != len(before) {
		t.Errorf("it wrote %d files", len(after)-len(before))
	}
}
