package suites

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/peers/suites/parts"
)

// bench builds the suites' binaries, each once for their parts and once for all sets of ours, and runs them.
type bench struct {
	// dir has the binaries. FLYBALL_SUITES_DIR names one that stays: what is up to date there is not linked again.
	dir string
	// folder is that of controller-runtime's packages.
	folder string
	// built has the binaries by name.
	built map[string]string
}

func newBench(t *testing.T) *bench {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/controller-runtime").Output()
	if err != nil {
		t.Fatalf("find controller-runtime: %v", err)
	}
	dir := os.Getenv("FLYBALL_SUITES_DIR")
	if dir == "" {
		dir = t.TempDir()
	}
	return &bench{dir: dir, folder: filepath.Join(strings.TrimSpace(string(out)), "pkg"), built: map[string]string{}}
}

// build returns the binary for a run.
func (b *bench) build(t *testing.T, r run) string {
	t.Helper()
	name := r.suite.name()
	args := []string{"test", "-c", "-ldflags=-s -w"}
	if r.parts != theirs {
		name += "-ours"
	}
	if binary, ok := b.built[name]; ok {
		return binary
	}
	binary := filepath.Join(b.dir, name+".test")
	if r.parts != theirs {
		dir := filepath.Join(b.dir, name)
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		file, err := overlay(b.folder, dir, r.suite)
		if err != nil {
			t.Fatal(err)
		}
		args = append(args, "-overlay", file)
	}
	out, err := exec.CommandContext(t.Context(), "go", append(args, "-o", binary, module+"/"+r.suite.path)...).CombinedOutput()
	if err != nil {
		t.Fatalf("build %s: %v\n%s", r, err, out)
	}
	b.built[name] = binary
	return binary
}

// limit is how long a suite may take; its own grace to write the report comes on top.
const limit = 5 * time.Minute

// run runs the binary and returns what became of the specs.
func (b *bench) run(t *testing.T, r run, binary string) *result {
	t.Helper()
	env, stop := start(t, r.server)
	defer stop()
	report := filepath.Join(t.TempDir(), "report.json")
	ctx, cancel := context.WithTimeout(t.Context(), limit+time.Minute)
	defer cancel()
	c := exec.CommandContext(ctx, "go", "tool", "test2json", binary, "-test.v=test2json", "-test.timeout="+(limit+30*time.Second).String(),
		"-ginkgo.timeout="+limit.String(), "-ginkgo.no-color", "-ginkgo.json-report="+report)
	c.Dir = filepath.Join(b.folder, r.suite.path) // for their testdata
	c.Env = append(append(os.Environ(), env...), parts.Env+"="+r.parts)
	var out, problems bytes.Buffer
	c.Stdout, c.Stderr = &out, &problems
	// envtest's servers are children of the suite: they end with it, whatever becomes of it.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = 10 * time.Second
	err := c.Run()
	_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
	got, readErr := readResult(&out, report, c.Dir)
	if readErr != nil {
		t.Fatalf("%s: %v (it ended with %v)\n%s", r, readErr, err, problems.Bytes())
	}
	if err != nil && len(got.failed) == 0 {
		got.add(died, false, fmt.Sprintf("%v\n%s", err, tail(got.output, 4000)))
	}
	return got
}

// tail is the end of a text.
func tail(text string, n int) string {
	if len(text) > n {
		return "…" + text[len(text)-n:]
	}
	return text
}
