package suites

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/peers/suites/parts"
)

// bench builds the suites' binaries, each once as it is and once for all sets of our parts, and runs them.
type bench struct {
	// dir has the binaries. FLYBALL_SUITES_DIR names one that stays: what is up to date there is not linked again.
	dir string
	// root is controller-runtime's folder in the module cache, and copy that of the changed copy; "" until it is
	// needed.
	root, copy string
}

func newBench(t *testing.T) *bench {
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}",
		"sigs.k8s.io/controller-runtime").Output()
	if err != nil {
		t.Fatalf("find controller-runtime: %v", err)
	}
	dir := os.Getenv("FLYBALL_SUITES_DIR")
	if dir == "" {
		dir = t.TempDir()
	}
	return &bench{dir: dir, root: strings.TrimSpace(string(out))}
}

// build returns the binary for a run, and the folder to run it in.
func (b *bench) build(t *testing.T, r run) (binary, folder string) {
	t.Helper()
	binary, root := filepath.Join(b.dir, r.suite.name()+".test"), b.root
	args := []string{"test", "-c", "-ldflags=-s -w"}
	if r.parts != theirs {
		if b.copy == "" {
			if err := b.makeCopy(); err != nil {
				t.Fatal(err)
			}
		}
		binary, root = filepath.Join(b.dir, r.suite.name()+"-ours.test"), b.copy
		// Paths are trimmed because the copy is somewhere else each time, which would have all that depends on it
		// compiled anew.
		args = append(args, "-trimpath", "-modfile="+filepath.Join(b.copy, "flyball.mod"))
	}
	out, err := exec.CommandContext(t.Context(), "go",
		append(args, "-o", binary, module+"/"+r.suite.path)...).CombinedOutput()
	if err != nil {
		t.Fatalf("build %s: %v\n%s", r, err, out)
	}
	return binary, filepath.Join(root, "pkg", r.suite.path)
}

// makeCopy makes the changed copy of controller-runtime, and in it the file for go test -modfile that says so.
func (b *bench) makeCopy() error {
	dir := filepath.Join(b.dir, "copy")
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.CopyFS(dir, os.DirFS(b.root)); err != nil {
		return fmt.Errorf("copy controller-runtime: %w", err)
	}
	if err := change(filepath.Join(dir, "pkg")); err != nil {
		return err
	}
	for name, more := range map[string]string{
		"mod": "\nreplace sigs.k8s.io/controller-runtime => " + dir + "\n",
		"sum": "",
	} {
		text, err := os.ReadFile("go." + name)
		if err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, "flyball."+name), append(text, more...), 0o600); err != nil {
			return err
		}
	}
	b.copy = dir
	return nil
}

// limit is how long a suite may take. A spec that hangs then has ginkgo's grace of 30 seconds before the report is
// written without it.
const limit = 4 * time.Minute

// run builds the suite, runs it, and returns what became of its specs and how long that took.
func (b *bench) run(t *testing.T, r run) (*result, time.Duration) {
	t.Helper()
	binary, folder := b.build(t, r)
	began := time.Now()
	if r.suite.metrics {
		l, err := net.Listen("tcp", ":8080")
		if err != nil {
			t.Fatalf("%s serves metrics at :8080, which something else does: %v", r, err)
		}
		l.Close()
	}
	env, stop := start(t, r.server)
	defer stop()
	dir := t.TempDir()
	report, used := filepath.Join(dir, "report.json"), filepath.Join(dir, "used")
	ctx, cancel := context.WithTimeout(t.Context(), limit+2*time.Minute)
	defer cancel()
	args := []string{
		"tool", "test2json", binary, "-test.v=test2json", "-test.timeout=" + (limit + 90*time.Second).String(),
		"-ginkgo.timeout=" + limit.String(), "-ginkgo.no-color", "-ginkgo.json-report=" + report,
	}
	hangs := r.suite.hangs[r.parts]
	if hangs != "" {
		args = append(args, "-ginkgo.skip="+regexp.QuoteMeta(hangs))
	}
	c := exec.CommandContext(ctx, "go", args...)
	c.Dir = folder // for their testdata
	c.Env = append(append(os.Environ(), env...), parts.Env+"="+r.parts, parts.EnvUsed+"="+used)
	var out, problems bytes.Buffer
	c.Stdout, c.Stderr = &out, &problems
	// envtest's servers are children of the suite: they end with it, whatever becomes of it.
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	c.WaitDelay = 10 * time.Second
	err := c.Run()
	_ = syscall.Kill(-c.Process.Pid, syscall.SIGKILL)
	got, readErr := readResult(&out, report, folder)
	if readErr != nil {
		t.Fatalf("%s: %v (it ended with %v)\n%s", r, readErr, err, problems.Bytes())
	}
	if err != nil && len(got.failed) == 0 {
		got.add(died, false, fmt.Sprintf("%v\n%s", err, tail(got.output, 4000)))
	}
	if hangs != "" {
		got.add(hangs, false, "it does not end, and was not run")
	}
	took := time.Since(began)
	if _, err := os.Stat(used); r.parts != theirs && got.unrun == 0 && err != nil {
		t.Errorf("%s never called a constructor of ours: the replacements miss it", r)
	}
	return got, took
}

// tail is the end of a text.
func tail(text string, n int) string {
	if len(text) > n {
		return "…" + text[len(text)-n:]
	}
	return text
}
