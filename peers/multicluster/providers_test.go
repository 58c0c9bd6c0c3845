package multicluster

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// runtimeModule is the path of multicluster-runtime.
const runtimeModule = "sigs.k8s.io/multicluster-runtime"

// swaps are the edits in a copy of multicluster-runtime that put our constructors in the place of controller-runtime's.
// Each must match.
var swaps = []struct{ path, old, new string }{
	{"pkg/manager/manager.go", `\bmanager\.New\(config, opts\)`, "flyball.NewManager(config, opts)"},
	{"providers/kubeconfig/provider.go", `\bcluster\.New\(`, "flyball.NewCluster("},
	{"providers/clusters/provider_test.go", `\bcluster\.New\(`, "flyball.NewCluster("},
	{"providers/multi/provider_test.go", `\bcluster\.New\(`, "flyball.NewCluster("},
	{"providers/namespace/provider_test.go", `\bcluster\.New\(`, "flyball.NewCluster("},
	// v0.24.1 was written for controller-runtime v0.24; this is what keeps it from compiling with v0.25.
	{
		"providers/namespace/cluster.go", `"k8s\.io/client-go/tools/events"`,
		`events "sigs.k8s.io/controller-runtime/pkg/recorder"`,
	},
}

// constructors is the package that the swaps call. It cannot be ours, which imports multicluster-runtime's manager.
const constructors = `package flyball

import (
	"os"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"github.com/flyball-dev/flyball/interop/controllerruntime"
)

func NewManager(config *rest.Config, o manager.Options) (manager.Manager, error) {
	if os.Getenv("FLYBALL_PARTS") == "" {
		return manager.New(config, o)
	}
	m, err := controllerruntime.NewManager(config, o)
	if err != nil {
		return nil, err
	}
	return m, nil
}

func NewCluster(config *rest.Config, opts ...cluster.Option) (cluster.Cluster, error) {
	if os.Getenv("FLYBALL_PARTS") == "" {
		return cluster.New(config, opts...)
	}
	return cluster.New(config, append([]cluster.Option{func(o *cluster.Options) {
		o.NewCache, o.NewClient = controllerruntime.NewCache, controllerruntime.NewClient
	}}, opts...)...)
}
`

// TestProvidersOfMulticlusterRuntime runs multicluster-runtime's own tests of its providers on kube-apiserver, with our
// manager and clusters. Where they fail, they are also run with controller-runtime's, to tell whose failure it is.
func TestProvidersOfMulticlusterRuntime(t *testing.T) {
	copied := copyRuntime(t)
	build := exec.CommandContext(t.Context(), "go", "run", "./upstream/cmd/controlplane", "-build")
	build.Dir, build.Stderr = "..", os.Stderr
	assets, err := build.Output()
	if err != nil {
		t.Fatalf("build kube-apiserver: %v", err)
	}
	for provider, want := range map[string]int{"clusters": 2, "kubeconfig": 11, "multi": 5, "namespace": 7} {
		t.Run(provider, func(t *testing.T) {
			binary := filepath.Join(copied, provider+".test")
			out, err := exec.CommandContext(t.Context(), "go", "test", "-c", "-trimpath", "-ldflags=-s -w",
				"-modfile="+filepath.Join(copied, "flyball.mod"), "-o", binary,
				runtimeModule+"/providers/"+provider).CombinedOutput()
			if err != nil {
				t.Fatalf("build: %v\n%s", err, out)
			}
			run := func(parts string) (passes int, output string) {
				report := filepath.Join(t.TempDir(), "report.json")
				c := exec.CommandContext(t.Context(), binary, "-test.timeout=5m", "-ginkgo.no-color",
					"-ginkgo.json-report="+report)
				c.Dir = filepath.Join(copied, "providers", provider)
				c.Env = append(os.Environ(), "KUBEBUILDER_ASSETS="+strings.TrimSpace(string(assets)),
					"KUBEBUILDER_CONTROLPLANE_START_TIMEOUT=2m", "USE_EXISTING_CLUSTER=false", "FLYBALL_PARTS="+parts)
				c.WaitDelay = 10 * time.Second
				out, err := c.CombinedOutput()
				return passed(t, report), fmt.Sprintf("%v\n%s", err, out[max(0, len(out)-8000):])
			}
			got, output := run("ours")
			if got == want {
				return
			}
			theirs, _ := run("")
			t.Errorf("%d of %d specs passed; with controller-runtime's own parts, %d\n%s", got, want, theirs, output)
		})
	}
}

// copyRuntime returns a copy of multicluster-runtime with the swaps, and in it flyball.mod, the module file to compile
// it with.
func copyRuntime(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", runtimeModule).Output()
	if err != nil {
		t.Fatalf("find multicluster-runtime: %v", err)
	}
	dir := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(dir, os.DirFS(strings.TrimSpace(string(out)))); err != nil {
		t.Fatal(err)
	}
	for _, s := range swaps {
		name := filepath.Join(dir, s.path)
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		old := regexp.MustCompile(s.old)
		if !old.Match(text) {
			t.Fatalf("%s has nothing that matches %q any more: the replacement has to be written anew", s.path, s.old)
		}
		text = old.ReplaceAll(text, []byte(s.new))
		if strings.HasPrefix(s.new, "flyball.") {
			text = bytes.Replace(text, []byte("\nimport (\n"), []byte("\nimport (\n\tflyball \""+runtimeModule+
				"/pkg/flyball\"\n"), 1)
		}
		write(t, name, text)
	}
	if err := os.Mkdir(filepath.Join(dir, "pkg", "flyball"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "pkg", "flyball", "flyball.go"), []byte(constructors))
	for _, kind := range []string{"mod", "sum"} {
		text, err := os.ReadFile("go." + kind)
		if err != nil {
			t.Fatal(err)
		}
		if kind == "mod" { // Its relative paths are those of this folder.
			text = append(text, "\nreplace "+runtimeModule+" => "+dir+"\n"...)
		}
		write(t, filepath.Join(dir, "flyball."+kind), text)
	}
	return dir
}

func write(t *testing.T, name string, text []byte) {
	t.Helper()
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// passed returns how many specs of a report passed.
func passed(t *testing.T, report string) (n int) {
	t.Helper()
	text, err := os.ReadFile(report)
	if err != nil {
		return 0
	}
	var suites []struct {
		SpecReports []struct{ LeafNodeType, State string }
	}
	if err := json.Unmarshal(text, &suites); err != nil {
		t.Fatal(err)
	}
	for _, s := range suites {
		for _, spec := range s.SpecReports {
			if spec.LeafNodeType == "It" && spec.State == "passed" {
				n++
			}
		}
	}
	return n
}
