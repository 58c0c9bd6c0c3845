package archtest

import (
	"go/ast"
	"go/token"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// pipeline is the order of the top-level folders: each may import only those before it, and internal. No package of
// internal imports any other of ours. The packages of deploy are for tests.
var pipeline = []string{
	"workqueue", "informer", "writes", "client", "reconcile", "manager", "multicluster", "controllers", "localapi",
	"simtest", "inspect", "deploy", "cmd", "examples", "docs",
}

// replaced are the packages whose work Flyball does itself. Adapters may implement their interfaces.
var replaced = []struct{ path, reason string }{
	{"k8s.io/client-go/tools/cache", "the informer is ours"},
	{"k8s.io/client-go/util/workqueue", "the queue is ours"},
	{"k8s.io/client-go/tools/record", "it loses queued events at shutdown, and brings tools/cache"},
	{"k8s.io/client-go/informers", "it is built on tools/cache"},
	{"k8s.io/client-go/listers", "it is built on tools/cache"},
	{"k8s.io/client-go/tools/leaderelection", "it brings tools/cache, and its locks the typed clientset"},
	{
		"k8s.io/client-go/kubernetes",
		"it links the clients of all API groups, a tenth of a build: package client and internal/groupclient do not",
	},
	{"k8s.io/client-go/applyconfigurations", "they take as long to build as the clientset: callers bring theirs"},
	{"sigs.k8s.io/controller-runtime", "it is what the framework competes with"},
}

// allowed are packages below a replaced one that may be used after all.
var allowed = []struct{ path, reason string }{
	{"k8s.io/client-go/kubernetes/scheme", "the types of the API, without clients"},
}

// adapters put our parts behind the interfaces of others, so they import the others. The book shows what others do.
var adapters = []string{"workqueue/clientgo", "informer/clientgo", "docs/book"}

// framework is what an embedder builds on: it brings nothing but the Kubernetes libraries.
var framework = []string{
	"workqueue", "informer", "writes", "client", "reconcile", "manager", "multicluster", "internal",
}

// kubernetesLibraries are what framework packages may import. The last is client-go's limiter, which every user of
// client-go has already.
var kubernetesLibraries = []string{
	"k8s.io/api", "k8s.io/apimachinery", "k8s.io/client-go", "k8s.io/klog/v2", "k8s.io/utils", "k8s.io/kube-openapi",
	"sigs.k8s.io",
	"golang.org/x/time/rate",
}

// keepsMethods is why templates are confined: see docs/decisions/0021-what-the-binary-links.md.
const keepsMethods = "a template calls methods by name, so the linker keeps every exported method in the program"

// confined libraries appear only below the given folders.
var confined = []struct {
	path   string
	only   []string
	reason string
}{
	{
		"github.com/cockroachdb/pebble",
		[]string{"localapi/storage/pebble", "cmd"},
		"who embeds a controller does not want a storage engine",
	},
	{
		"github.com/prometheus/client_golang",
		[]string{
			"workqueue/metrics", "informer/metrics", "manager", "multicluster", "cmd", "examples",
		},
		"metrics are an interface; prometheus is one implementation",
	},
	{"k8s.io/apiserver", []string{"localapi/cel"}, "who embeds an API does not want the machinery of the real one"},
	{"github.com/google/cel-go", []string{"localapi/cel"}, "who embeds an API does not want a compiler in it"},
	{
		"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel",
		[]string{"localapi/cel"},
		"it brings cel-go",
	},
	{
		"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting",
		[]string{"localapi/cel"},
		"it brings cel-go",
	},
	{"github.com/spf13/cobra", []string{"cmd", "examples"}, "flags are the binary's business"},
	{"github.com/spf13/pflag", []string{"manager/flags", "cmd", "examples"}, "flags are the binary's business"},
	{"golang.org/x/term", []string{"cmd", "examples"}, "terminal output is the binary's business"},
	{"html/template", []string{"simtest"}, keepsMethods},
	{"text/template", []string{"multicluster/providers"}, keepsMethods},
}

// onDisk brings a storage engine.
const onDisk = "localapi/storage/pebble"

// expressions brings a compiler for CEL, and much else.
const expressions = "localapi/cel"

// TestImports holds every non-test file to the rules above. It prints the arrows between the top-level folders.
func TestImports(t *testing.T) {
	arrows, up := map[string][]string{}, 0 // folder → the folders that it imports
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		for _, spec := range s.ast.Imports {
			path, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				t.Fatal(err)
			}
			for _, complaint := range judge(s.dir, path) {
				t.Errorf("%s imports %s: %s", s.path, path, complaint)
			}
			own, isOwn := strings.CutPrefix(path, module+"/")
			from, to := topLevel(s.dir), topLevel(own)
			if isOwn && from != to && !slices.Contains(arrows[from], to) {
				arrows[from] = append(arrows[from], to)
				if upward(s.dir, own) != "" {
					up++
				}
			}
		}
	}
	count := 0
	for _, from := range slices.Concat([]string{"internal"}, pipeline) {
		slices.SortFunc(arrows[from], func(a, b string) int { return rank(a) - rank(b) })
		count += len(arrows[from])
		t.Logf("%-12s → %s", from, strings.Join(arrows[from], ", "))
	}
	t.Logf("%d arrows between top-level folders, %d of them up", count, up)
}

// judge returns what is wrong with a file in dir importing path.
func judge(dir, path string) []string {
	var wrong []string
	if own, ok := strings.CutPrefix(path, module+"/"); ok {
		if complaint := upward(dir, own); complaint != "" {
			wrong = append(wrong, complaint)
		}
		if under(dir, "reconcile") && under(own, "client") {
			wrong = append(wrong, "the loop needs the record of own writes only: programs bring the client they want")
		}
		if under(own, onDisk) && !underAny(dir, onDisk, "cmd", "examples") {
			wrong = append(wrong, "who embeds a controller, or an API, does not want a storage engine")
		}
		if under(own, expressions) && !underAny(dir, expressions, "localapi/envtest", "cmd", "examples") {
			wrong = append(wrong, "who embeds an API does not want a compiler in it: callers pass it in Options.CEL")
		}
		return wrong
	}
	for _, r := range replaced {
		excepted := slices.ContainsFunc(allowed,
			func(a struct{ path, reason string }) bool { return under(path, a.path) })
		if under(path, r.path) && !excepted && !underAny(dir, adapters...) {
			wrong = append(wrong, r.reason)
		}
	}
	for _, c := range confined {
		if under(path, c.path) && !underAny(dir, c.only...) {
			wrong = append(wrong, c.reason)
		}
	}
	standard := !strings.Contains(strings.SplitN(path, "/", 2)[0], ".")
	judged := underAny(path, "github.com/prometheus", "github.com/spf13") // by confined
	if underAny(dir, framework...) && !standard && !judged && !underAny(path, kubernetesLibraries...) {
		wrong = append(wrong, "framework packages reach only the Kubernetes libraries")
	}
	return wrong
}

// upward returns what is wrong with a package of the folder from importing one of the folder to; "" if nothing is.
func upward(from, to string) string {
	from, to = topLevel(from), topLevel(to)
	arrow := "the arrow " + from + " → " + to
	switch {
	case from == to || to == "internal":
		return ""
	case from == "internal":
		return arrow + " leads out of internal, which holds leaves: its packages import none of ours but each other"
	case rank(from) < 0:
		return arrow + " begins at a folder that has no place in the order " + strings.Join(pipeline, " < ")
	case rank(to) < 0:
		return arrow + " ends at a folder that has no place in the order " + strings.Join(pipeline, " < ")
	case rank(to) > rank(from):
		return arrow + " runs back up the order " + strings.Join(pipeline, " < ")
	}
	return ""
}

// topLevel returns the first element of a path.
func topLevel(path string) string {
	first, _, _ := strings.Cut(path, "/")
	return first
}

// rank returns the place of a top-level folder in the pipeline, -1 for others.
func rank(folder string) int { return slices.Index(pipeline, folder) }

// TestJudge shows that the rules can fail: one import for each that must be refused, and some that must not.
func TestJudge(t *testing.T) {
	for _, c := range []struct {
		dir, path string
		refused   bool
	}{
		{"workqueue", module + "/informer", true},
		{"informer", module + "/workqueue", false},
		{"internal/workctx", module + "/workqueue", true},
		{"internal/buildcalls", module + "/internal/misuse", false},
		{"internal/wire", module + "/informer/listwatch", true},
		{"informer", module + "/writes", true},
		{"informer/internal/connection", module + "/writes", true},
		{"writes/internal/caches", module + "/informer", false},
		{"writes", module + "/client", true},
		{"client", module + "/writes", false},
		{"internal/trace", module + "/workqueue", true},
		{"client/internal/cached", module + "/reconcile", true},
		{"client/internal/cached", module + "/informer", false},
		{"reconcile", module + "/reconcile/internal/feed", false},
		{"simtest", module + "/examples/hello", true},
		{"simtest/simulated", module + "/controllers", false},
		{"examples/hello", module + "/cmd/flyball/serve", false},
		{"cmd/flyball", module + "/examples/hello", true},
		{"cmd/flyball", module + "/docs/book/programs/chapter01", true},
		{"deploy/deploytest", module + "/localapi", false},
		{"localapi", module + "/deploy/deploytest", true},
		{"workqueue", module + "/unknown", true},
		{"unknown", module + "/workqueue", true},
		{"workqueue", module + "/internal/workctx", false},
		{"reconcile", module + "/writes", false},
		{"reconcile", module + "/client", true},
		{"writes", module + "/reconcile", true},
		{"manager", module + "/multicluster", true},
		{"informer", "k8s.io/client-go/tools/cache", true},
		{"informer/clientgo", "k8s.io/client-go/tools/cache", false},
		{"manager", "k8s.io/client-go/tools/leaderelection", true},
		{"manager", "k8s.io/client-go/tools/leaderelection/resourcelock", true},
		{"manager", "k8s.io/client-go/kubernetes", true},
		{"client/events", "k8s.io/client-go/kubernetes/typed/core/v1", true},
		{"controllers/internal/fakeapi", "k8s.io/client-go/kubernetes/fake", true},
		{"cmd/flyball/demo", "k8s.io/client-go/applyconfigurations/core/v1", true},
		{"client", "k8s.io/client-go/kubernetes/scheme", false},
		{"docs/book/programs/chapter01", "k8s.io/client-go/kubernetes/typed/core/v1", false},
		{"workqueue", "golang.org/x/time/rate", false},
		{"workqueue", "golang.org/x/sync/errgroup", true},
		{"workqueue", "github.com/prometheus/client_golang/prometheus", true},
		{"workqueue/metrics", "github.com/prometheus/client_golang/prometheus", false},
		{"cmd/flyball/site", "html/template", true},
		{"simtest", "html/template", false},
		{"localapi/storage/memory", "github.com/cockroachdb/pebble", true},
		{"localapi", module + "/localapi/storage/pebble", true},
		{"cmd/flyball/run", module + "/localapi/storage/pebble", false},
		{"localapi/internal/crd", "k8s.io/apiserver/pkg/cel", true},
		{"localapi", "github.com/google/cel-go/cel", true},
		{"localapi/cel", "github.com/google/cel-go/cel", false},
		{"localapi/internal/customresource", "k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting", true},
		{"localapi", module + "/localapi/cel", true},
		{"localapi/envtest", module + "/localapi/cel", false},
		{"controllers/deployment", "github.com/spf13/cobra", true},
		{"cmd/flyball", "github.com/spf13/cobra", false},
		{"manager", "github.com/spf13/pflag", true},
		{"manager/flags", "github.com/spf13/pflag", false},
		{"cmd/flyball", module + "/localapi", false},
		{"controllers/deployment", module + "/localapi", true},
	} {
		if got := judge(c.dir, c.path); (len(got) > 0) != c.refused {
			t.Errorf("judge(%q, %q) = %q, want refused: %v", c.dir, c.path, got, c.refused)
		}
	}
}

// TestNoWorkspace: a workspace would let the versions of the other modules change ours.
func TestNoWorkspace(t *testing.T) {
	if _, err := os.Stat(root + "/go.work"); err == nil {
		t.Error("go.work exists; the modules are tied by replace lines instead")
	}
}

// TestMethodsByName: methods are looked up only by names that the linker can see. Otherwise it keeps every exported
// method of every type of the program, see decision 0021.
func TestMethodsByName(t *testing.T) {
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		for _, line := range lookups(s) {
			t.Errorf("%s:%d: MethodByName needs a literal or a constant of the same file", s.path, line)
		}
	}
	const bad = `package a

import "reflect"

const known = "B"

func f(v reflect.Value, name string) {
	v.MethodByName(known)
	v.MethodByName("B")
	v.MethodByName(name)
}
`
	if got := lookups(parsed(t, "a", bad)); !slices.Equal(got, []int{10}) {
		t.Errorf("lookups that the linker cannot see are in lines %v, want 10", got)
	}
}

// lookups returns the lines with a call of MethodByName whose name is not constant.
func lookups(s source) (lines []int) {
	constant := map[string]bool{}
	for _, d := range s.ast.Decls {
		if g, ok := d.(*ast.GenDecl); ok && g.Tok == token.CONST {
			for _, spec := range g.Specs {
				for _, name := range spec.(*ast.ValueSpec).Names {
					constant[name.Name] = true
				}
			}
		}
	}
	ast.Inspect(s.ast, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if f, ok := call.Fun.(*ast.SelectorExpr); !ok || f.Sel.Name != "MethodByName" {
			return true
		}
		name, isName := call.Args[0].(*ast.Ident)
		if _, literal := call.Args[0].(*ast.BasicLit); !literal && !(isName && constant[name.Name]) {
			lines = append(lines, s.fset.Position(call.Pos()).Line)
		}
		return true
	})
	return lines
}
