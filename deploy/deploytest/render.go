package deploytest

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/client/manifest"
	"github.com/flyball-dev/flyball/internal/kit"
)

// Render returns the objects of the kustomization in dir, as kubectl apply -k would send them. It builds kustomize, so
// it skips the test where [kit.Guard] does.
func Render(t *testing.T, dir string) []manifest.Object {
	t.Helper()
	kit.Guard(t)
	tools := filepath.Join(root(t), "tools", "go.mod")
	command, stderr := exec.Command("go", "tool", "-modfile="+tools, "kustomize", "build", dir), bytes.Buffer{}
	command.Stderr = &stderr
	text, err := command.Output()
	if err != nil {
		t.Fatalf("kustomize build %s: %v\n%s", dir, err, &stderr)
	}
	objects, err := manifest.Read("kustomize build "+dir, bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

// root returns the folder of the repository.
func root(t *testing.T) string {
	t.Helper()
	dir, err := kit.Root()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// Version returns the version of the images. It is written in deploy/version alone, once for all of them.
func Version(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), "deploy", "version", "kustomization.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var component struct {
		Images []struct{ Name, NewTag string }
	}
	if err := yaml.Unmarshal(text, &component); err != nil {
		t.Fatal(err)
	}
	tag := component.Images[0].NewTag
	for _, i := range component.Images {
		if i.NewTag != tag {
			t.Errorf("deploy/version: %s has the tag %s, not %s", i.Name, i.NewTag, tag)
		}
	}
	return tag
}

// find reads the first object of a kind.
func find(t *testing.T, objects []manifest.Object, kind string, into any) {
	t.Helper()
	if err := manifest.Find(objects, kind, into); err != nil {
		t.Fatal(err)
	}
}
