package main

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/flyball-dev/flyball/simtest"
)

// Digests are asked for: of a folder, twice; of another one in its place, twice before there is an answer; and of one
// that does not exist. The manager runs as on a cluster; the tool ends it when it is idle.
func TestSimulatedLife(t *testing.T) {
	crd := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(definition, &crd.Object); err != nil {
		t.Fatal(err)
	}
	scheme := runtime.NewScheme()
	addToScheme(scheme)
	dir := t.TempDir()
	old, young := filepath.Join(dir, "old"), filepath.Join(dir, "young")
	for path, text := range map[string]string{old: "1", young: "2"} {
		if err := os.Mkdir(path, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(path, "a.txt"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	folder := func(name, path string) *Folder {
		return &Folder{
			ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}, Spec: FolderSpec{Path: path, Round: 1},
		}
	}
	mine, none := folder("mine", old), folder("none", filepath.Join(dir, "none"))
	again := func(u *simtest.User, path string) {
		simtest.Update(u, mine, func(f *Folder) {
			f.Spec.Path = path
			f.Spec.Round++
		})
	}
	simtest.Check(t, simtest.Scenario{
		Scheme:  scheme,
		Objects: []runtime.Object{crd},
		Build:   func(e *simtest.Env) (simtest.Program, error) { return newManager(e.Config()) },
		Budget:  time.Second,
		Script: func(u *simtest.User) {
			u.Create(mine)
			u.Settle()
			again(u, old)
			u.Settle()
			again(u, young)
			again(u, young)
			u.Create(none)
			u.Settle()
			u.Delete(none)
			u.Delete(mine)
			u.Create(mine)
			u.Settle()
		},
	})
}
