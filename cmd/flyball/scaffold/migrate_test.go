package scaffold

import (
	"bytes"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/internal/kit"
)

// goIn runs a go command in a folder.
func goIn(t *testing.T, dir string, args ...string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", args...)
	command.Dir = dir
	if text, err := command.CombinedOutput(); err != nil {
		t.Errorf("go %s: %v\n%s", strings.Join(args, " "), err, text)
	}
}

// testProject vets the project in a folder, and runs its tests.
func testProject(t *testing.T, dir string) {
	t.Helper()
	goIn(t, dir, "mod", "tidy")
	goIn(t, dir, "vet", "./...")
	goIn(t, dir, "test", "./...")
}

// kubebuilderProject returns a copy of testdata/kubebuilder, whose Go files end in .txt: no tool is to take them for
// part of this module.
func kubebuilderProject(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("testdata/kubebuilder")); err != nil {
		t.Fatal(err)
	}
	for path := range filesOf(t, dir) {
		if name, ok := strings.CutSuffix(path, ".txt"); ok {
			if err := os.Rename(filepath.Join(dir, path), filepath.Join(dir, name)); err != nil {
				t.Fatal(err)
			}
		}
	}
	return dir
}

// TestMigrate moves a project in the layout of kubebuilder, adds a kind to it, and runs all its tests. What the command
// does not know is listed and stays as it is.
func TestMigrate(t *testing.T) {
	dir := kubebuilderProject(t)
	var out bytes.Buffer
	o := MigrateOptions{Dir: dir, Source: root, Out: &out}
	if err := Migrate(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if want := `cmd/main.go:19: what takes the place of "sigs.k8s.io/controller-runtime/pkg/certwatcher" is yours to ` +
		"decide"; strings.Count(out.String(), "yours to decide") != 1 || !strings.Contains(out.String(), want) {
		t.Errorf("report:\n%s", &out)
	}
	main := filepath.Join(dir, "cmd/main.go")
	text, err := os.ReadFile(main)
	if err != nil {
		t.Fatal(err)
	}
	var rest []string
	for line := range strings.Lines(string(text)) {
		if !strings.Contains(line, "certwatcher") {
			rest = append(rest, line)
		}
	}
	if err := os.WriteFile(main, []byte(strings.Join(rest, "")), 0o644); err != nil {
		t.Fatal(err)
	}
	createGroupAPI(t, dir, "shop", "v1/Basket")
	kit.Guard(t)
	testProject(t, dir)
	wrong := exec.CommandContext(t.Context(), "go", "run", "./cmd", "--zap-devel")
	wrong.Dir = dir
	said, err := wrong.CombinedOutput()
	if want := "not defined: -zap-devel\n" + manifestNames + "\n"; err == nil || !strings.Contains(string(said), want) {
		t.Errorf("an unknown flag: %v\n%s", err, said)
	}
	got := filesOf(t, dir)
	for path, want := range map[string]string{
		"Makefile":                    "test: manifests generate fmt vet ## Run tests.\n\tgo test ./...\n",
		"config/manager/manager.yaml": "            port: 8081\n            scheme: HTTPS\n        readinessProbe",
		"PROJECT":                     "layout:\n- flyball.dev/v1\n",
		"cmd/main.go":                 "controller.BasketReconciler{",
	} {
		if !strings.Contains(got[path], want) {
			t.Errorf("%s without %q:\n%s", path, want, got[path])
		}
	}
	if strings.Contains(got["go.mod"], "controller-runtime") {
		t.Errorf("go.mod:\n%s", got["go.mod"])
	}
	if err := Migrate(t.Context(), o); err == nil || !strings.Contains(err.Error(), "nothing to migrate") {
		t.Errorf("again: %v", err)
	}
	if after := filesOf(t, dir); !maps.Equal(got, after) {
		t.Error("again, it changed files")
	}
}

// TestMigrateTutorial moves the projects of kubebuilder's tutorials, one of which has two versions of its kind, and one
// with several groups. It runs the suites of their controllers and of their webhooks. The environment variable
// FLYBALL_KUBEBUILDER names a checkout of kubebuilder.
func TestMigrateTutorial(t *testing.T) {
	checkout := os.Getenv("FLYBALL_KUBEBUILDER")
	if checkout == "" {
		t.Skip("FLYBALL_KUBEBUILDER names no checkout of kubebuilder")
	}
	for _, project := range []string{
		"docs/book/src/getting-started/testdata/project",
		"docs/book/src/cronjob-tutorial/testdata/project",
		"docs/book/src/multiversion-tutorial/testdata/project",
		"testdata/project-v4-multigroup",
	} {
		t.Run(project, func(t *testing.T) {
			dir := t.TempDir()
			if err := os.CopyFS(dir, os.DirFS(filepath.Join(checkout, project))); err != nil {
				t.Fatal(err)
			}
			if err := os.RemoveAll(filepath.Join(dir, "test")); err != nil { // it needs a cluster of kind
				t.Fatal(err)
			}
			var out bytes.Buffer
			if err := Migrate(t.Context(), MigrateOptions{Dir: dir, Source: root, Out: &out}); err != nil {
				t.Fatal(err)
			}
			if strings.Contains(out.String(), "yours to decide") {
				t.Errorf("report:\n%s", &out)
			}
			goIn(t, dir, "mod", "tidy")
			goIn(t, dir, "vet", "./...")
			goIn(t, dir, "test", "./internal/...")
		})
	}
}
