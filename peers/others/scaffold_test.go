package others

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// kubebuilder is where the command comes from that writes projects.
const kubebuilder = "sigs.k8s.io/kubebuilder/v4"

// apis are the projects in kubebuilder's testdata, by the arguments of "create api", without webhooks and what only
// they make work. They are modules of their own that no proxy has; the command writes them anew, as its authors do.
//
// Source: sigs.k8s.io/kubebuilder/v4 v4.10.1 test/testdata/generate.sh.
var apis = map[string][]string{
	"project-v4": {
		"--group crew --version v1 --kind Captain --controller=true --resource=true",
		"--group crew --version v1 --kind FirstMate --controller=true --resource=true",
		"--group crew --version v1 --kind Sailor --controller=true --resource=true",
		"--group crew --version v1 --kind Admiral --plural=admirales --controller=true --resource=true " +
			"--namespaced=false",
	},
	"project-v4-with-plugins": {
		"--group example.com --version v1alpha1 --kind Memcached --image=memcached:1.6.26-alpine3.19 " +
			"--image-container-command=memcached,--memory-limit=64,-o,modern,-v --image-container-port=11211 " +
			"--run-as-user=1001 --plugins=deploy-image/v1-alpha",
		"--group example.com --version v1alpha1 --kind Busybox --image=busybox:1.36.1 --plugins=deploy-image/v1-alpha",
		"--group example.com --version v1 --kind Wordpress --controller=true --resource=true",
	},
}

// scaffolded returns a folder with the project, which is written once. Its go.mod and definitions are made by its
// Makefile.
func scaffolded(t *testing.T, project, version string) string {
	t.Helper()
	dir := filepath.Join(cache(t), "kubebuilder", version, project)
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	author := source(t, kubebuilder, version)
	kb := filepath.Join(author, "bin", "kubebuilder")
	command(t, author, "go", "build", "-o", kb, ".")
	temporary := fmt.Sprintf("%s.%d", dir, os.Getpid())
	half := filepath.Join(temporary, project) // The project is called as its folder is.
	if err := os.MkdirAll(half, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(temporary) })
	command(t, half, "go", "mod", "init", "sigs.k8s.io/kubebuilder/testdata/"+project)
	command(t, half, kb, "init", "--plugins=go/v4", "--domain", "testproject.org", "--license", "apache2", "--owner",
		"The Kubernetes authors")
	for _, api := range apis[project] {
		command(t, half, kb, append([]string{"create", "api", "--make=false"}, strings.Fields(api)...)...)
	}
	command(t, half, "make", "manifests", "generate")
	if err := os.Rename(half, dir); err != nil {
		t.Fatal(err)
	}
	return dir
}
