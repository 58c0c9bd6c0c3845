package others

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// controllerRuntime is the version that interop/controllerruntime is made for. Operators on an older one are built
// with it.
const controllerRuntime = "v0.25.2"

// change is one of a file of a module. The old text stands there once.
type change struct{ file, old, new string }

// in returns the text of the file with the change.
func (c change) in(t *testing.T, text string) string {
	t.Helper()
	if n := strings.Count(text, c.old); n != 1 {
		t.Fatalf("%s has %q %d times: see what this version does", c.file, c.old, n)
	}
	return strings.Replace(text, c.old, c.new, 1)
}

// hooks are what is changed in the copy of controller-runtime: what it makes when its user has named nothing else is
// what the suite's hook names.
var hooks = []change{
	{"pkg/cluster/cluster.go", "options.NewClient = client.New\n", "options.NewClient = DefaultNewClient\n"},
	{"pkg/cluster/cluster.go", "options.NewCache = cache.New\n", "options.NewCache = DefaultNewCache\n"},
	{"pkg/cluster/cluster.go", "// Options are", `// What is made for those who name nothing.
var (
	DefaultNewClient = client.New
	DefaultNewCache  = cache.New
)

// Options are`},
	{
		"pkg/controller/controller.go", "\tif options.NewQueue == nil {\n",
		`	type newQueue = func(
		string, workqueue.TypedRateLimiter[request],
	) workqueue.TypedRateLimitingInterface[request]
	if f, ok := DefaultNewQueue.(newQueue); ok && options.NewQueue == nil {
		options.NewQueue = f
	}
	if options.NewQueue == nil {
`,
	},
	{
		"pkg/controller/controller.go", "// New returns a new Controller",
		`// DefaultNewQueue makes the queues of those who name nothing, if it is of their type.
var DefaultNewQueue any

// New returns a new Controller`,
	},
}

// hook sets them. It is a file of the suite's package, which the build sees and the folder does not have.
const hook = `package %s

import (
	flyball "github.com/flyball-dev/flyball/interop/controllerruntime"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func init() {
	cluster.DefaultNewCache = flyball.NewCache
	cluster.DefaultNewClient = flyball.NewClient
	controller.DefaultNewQueue = flyball.NewQueue[reconcile.Request]
}
`

// dependency is a module that does not compile with the libraries of Kubernetes that ours need.
type dependency struct {
	module, version string
	changes         []change
}

// swapped builds a suite with our cache, client and queue wherever it names none.
func swapped(t *testing.T, module string, o operator) string {
	t.Helper()
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	temporary := t.TempDir()
	for to, from := range map[string]string{"flyball.mod": "go.mod", "flyball.sum": "go.sum"} {
		write(t, filepath.Join(temporary, to), read(t, filepath.Join(module, from)))
	}
	const theirs, ours = "sigs.k8s.io/controller-runtime", "github.com/flyball-dev/flyball"
	mod := filepath.Join(temporary, "flyball.mod")
	command(t, module, "go", "mod", "edit",
		"-require="+theirs+"@"+controllerRuntime, "-replace="+theirs+"="+patched(t, theirs, controllerRuntime, hooks),
		"-require="+ours+"@v0.0.0", "-replace="+ours+"="+root,
		"-require="+ours+"/interop/controllerruntime@v0.0.0",
		"-replace="+ours+"/interop/controllerruntime="+filepath.Join(root, "interop", "controllerruntime"), mod)
	for _, d := range o.changed {
		command(t, module, "go", "mod", "edit", "-replace="+d.module+"="+patched(t, d.module, d.version, d.changes),
			mod)
	}
	command(t, module, "go", append(append([]string{"mod", "edit"}, sameKubernetes(t, module, mod)...), mod)...)

	// The build sees the hook, and the operator's own files with their changes; the folder stays as it is.
	dir := filepath.Join(module, o.suite)
	files := map[string]string{filepath.Join(dir, "flyball_test.go"): fmt.Sprintf(hook, packageName(t, dir))}
	for _, c := range o.own {
		path := filepath.Join(module, c.file)
		if _, ok := files[path]; !ok {
			files[path] = read(t, path)
		}
		files[path] = c.in(t, files[path])
	}
	replace := map[string]string{}
	for path, text := range files {
		replace[path] = filepath.Join(temporary, filepath.Base(path))
		write(t, replace[path], text)
	}
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(temporary, "overlay.json"), string(overlay))
	return program(t, module, o, "-modfile="+mod, "-overlay="+filepath.Join(temporary, "overlay.json"))
}

// libraries is the version of Kubernetes that controller-runtime and ours are built with, and staging a version of
// any of them.
const libraries = "v0.37.2"

var staging = regexp.MustCompile(`^v0\.[1-9][0-9]\.[0-9]+$`)

// sameKubernetes are the arguments that require all libraries of Kubernetes at one version: they fit no other.
func sameKubernetes(t *testing.T, module, mod string) (args []string) {
	t.Helper()
	var file struct {
		Require []struct{ Path, Version string }
	}
	if err := json.Unmarshal(command(t, module, "go", "mod", "edit", "-json", mod), &file); err != nil {
		t.Fatal(err)
	}
	for _, r := range file.Require {
		if strings.HasPrefix(r.Path, "k8s.io/") && staging.MatchString(r.Version) {
			args = append(args, "-require="+r.Path+"@"+libraries)
		}
	}
	return args
}

// patched is a copy of a module with changes. It is made once for these changes, at a path of its own: Go's cache
// knows packages by their path.
func patched(t *testing.T, module, version string, changes []change) string {
	t.Helper()
	key := sha256.Sum256(fmt.Appendf(nil, "%q", changes))
	name := filepath.Base(strings.TrimSuffix(module, "/v2"))
	dir := filepath.Join(cache(t), fmt.Sprintf("%s-%s-%x", name, version, key[:8]))
	if _, err := os.Stat(dir); err == nil {
		return dir
	}
	half := fmt.Sprintf("%s.%d", dir, os.Getpid())
	if err := copyTree(half, source(t, module, version)); err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		path := filepath.Join(half, c.file)
		write(t, path, c.in(t, read(t, path)))
	}
	if err := os.Rename(half, dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

// packageName is the package of the tests in a folder.
func packageName(t *testing.T, dir string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%s has no tests: %v", dir, err)
	}
	file, err := parser.ParseFile(token.NewFileSet(), files[0], nil, parser.PackageClauseOnly)
	if err != nil {
		t.Fatal(err)
	}
	return file.Name.Name
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}
