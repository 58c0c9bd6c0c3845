package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/peers/upstream"
)

// edit replaces what matches an expression in a file of Kubernetes, once or more. New may name groups of the match.
type edit struct {
	path, old, new string
}

// importing returns the edit that adds an import of a package below this one.
func importing(path, name string) edit {
	return edit{
		path, `(?m)^import \(\n`, "${0}\t\"github.com/flyball-dev/flyball/peers/integration/" + name + "\"\n",
	}
}

// build is Kubernetes with edits, from which tests are built.
type build struct {
	// module is the folder of module peers, and dir one with the files that the edits made.
	module, dir string
}

// newBuild applies the edits. Added are files of this repository that exist in the build only; a key is the path below
// the root, a value is the text. The go command does not let an overlay replace files of the module cache. So the build
// requires Kubernetes by the path of a symbolic link to its folder there, and the overlay replaces files behind the
// link. The versions and the -trimpath stay what they are elsewhere, so that the build cache of the control plane is
// used.
func newBuild(t *testing.T, edits []edit, added map[string]string) *build {
	t.Helper()
	module, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	b := &build{module: module, dir: t.TempDir()}
	kubernetes := b.output(t, "go", "list", "-m", "-f", "{{.Dir}}", "k8s.io/kubernetes")
	link := filepath.Join(b.dir, "kubernetes")
	if err := os.Symlink(kubernetes, link); err != nil {
		t.Fatal(err)
	}
	replaced := map[string]string{} // path in the build to text
	for _, e := range edits {
		path := filepath.Join(link, e.path)
		text, ok := replaced[path]
		if !ok {
			text = string(b.read(t, path))
		}
		old := regexp.MustCompile(e.old)
		if !old.MatchString(text) {
			t.Fatalf("Kubernetes' %s has nothing that matches %q any more: write the edit anew", e.path, e.old)
		}
		replaced[path] = old.ReplaceAllString(text, e.new)
	}
	for path, text := range added {
		replaced[filepath.Join(filepath.Dir(module), path)] = text
	}
	overlay := struct{ Replace map[string]string }{map[string]string{}}
	for path, text := range replaced {
		overlay.Replace[path] = filepath.Join(b.dir, fmt.Sprintf("%d.go", len(overlay.Replace)))
		b.write(t, overlay.Replace[path], []byte(text))
	}
	text, err := json.Marshal(overlay)
	if err != nil {
		t.Fatal(err)
	}
	b.write(t, filepath.Join(b.dir, "overlay.json"), text)
	b.write(t, filepath.Join(b.dir, "go.mod"), fmt.Appendf(
		b.read(t, filepath.Join(module, "go.mod")), "\nreplace k8s.io/kubernetes => %s\n", link))
	b.write(t, filepath.Join(b.dir, "go.sum"), b.read(t, filepath.Join(module, "go.sum")))
	return b
}

func (b *build) read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func (b *build) write(t *testing.T, path string, text []byte) {
	t.Helper()
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// output runs a command in the folder of module peers.
func (b *build) output(t *testing.T, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir, cmd.Stderr = b.module, os.Stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v", name, strings.Join(args, " "), err)
	}
	return strings.TrimSpace(string(out))
}

// test returns the command that builds and runs the tests of a package of Kubernetes' folder test/integration, and
// reports as test2json does.
func (b *build) test(t *testing.T, folder string, flags ...string) *exec.Cmd {
	t.Helper()
	// -trimpath and the environment are those of package upstream, with which the packages are in the build cache.
	binaries, err := upstream.Build(t.Context(), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	cache := b.output(t, "go", "env", "GOMODCACHE")
	args := append([]string{
		"test", "-json", "-vet=off", "-count=1", "-trimpath", "-modfile", filepath.Join(b.dir, "go.mod"),
		"-overlay", filepath.Join(b.dir, "overlay.json"),
		"-ldflags", "-X k8s.io/component-base/version.gitVersion=" + upstream.Version,
	}, flags...)
	cmd := exec.CommandContext(t.Context(), "go", append(args, "k8s.io/kubernetes/test/integration/"+folder)...)
	cmd.Dir = b.module
	cmd.Env = append(os.Environ(), "GOWORK=off", "CGO_ENABLED=0", "GOFLAGS=-buildvcs=false",
		"PATH="+binaries+string(filepath.ListSeparator)+os.Getenv("PATH"),
		// These tell kube-apiserver's test server where its package is, which -trimpath hides.
		"TEST_SRCDIR="+cache, "TEST_WORKSPACE=.",
	)
	return cmd
}
