package others

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
)

// outcome is what became of the specs of a suite.
type outcome struct {
	passed int
	failed map[string]string // what went wrong, by spec
	took   time.Duration
	memory int // the peak of the suite's process, in KiB
}

// limit is how long a suite may take. What is stuck is ended with its goroutines' stacks.
const limit = 30 * time.Minute

// run runs a suite's program in its package's folder, on the cluster of a kubeconfig.
func run(t *testing.T, program, dir, kubeconfig string, operator operator) outcome {
	t.Helper()
	report := filepath.Join(t.TempDir(), "report.json")
	args := []string{"-test.timeout=" + limit.String()}
	if operator.plain {
		args = append(args, "-test.v")
	} else {
		args = append(args, "-ginkgo.no-color", "-ginkgo.json-report="+report)
	}
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "USE_EXISTING_CLUSTER=true", "KUBECONFIG="+kubeconfig)
	if operator.home {
		home := t.TempDir()
		write(t, filepath.Join(home, ".kube", "config"), read(t, kubeconfig))
		cmd.Env = append(cmd.Env, "KUBECONFIG=", "HOME="+home)
	}
	cmd.Env = append(cmd.Env, operator.env...)
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	begin := time.Now()
	err := cmd.Run()
	o := outcome{took: time.Since(begin), failed: map[string]string{}}
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	o.memory = int(cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)
	if operator.plain {
		err = o.readPlain(out.String(), err == nil)
	} else {
		err = o.read(report)
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, tail(out.String()))
	}
	return o
}

// result is what package testing prints when a test ends, and next what it prints before and after a test's own text.
var (
	result = regexp.MustCompile(`(?m)^ *--- (PASS|FAIL|SKIP): (\S+) \(`)
	next   = regexp.MustCompile(`(?m)^(=== | *--- )`)
)

// readPlain takes the tests from what package testing prints: those without subtests, and those that fail although
// none of their subtests does.
func (o *outcome) readPlain(out string, passed bool) error {
	counts := map[string]bool{} // the names of tests whose subtests count, also with the state of the subtests
	all := result.FindAllStringSubmatch(out, -1)
	slices.Reverse(all) // A test is printed before its subtests.
	for _, m := range all {
		state, name := m[1], m[2]
		for parent := name; strings.Contains(parent, "/") && state != "SKIP"; {
			parent = parent[:strings.LastIndex(parent, "/")]
			counts[parent], counts[state+parent] = true, true
		}
		switch {
		case state == "FAIL" && !counts["FAIL"+name]:
			_, text, _ := strings.Cut(out, "=== RUN   "+name+"\n")
			o.failed[name] = strings.TrimSpace(text[:append(next.FindStringIndex(text), len(text))[0]])
		case state == "PASS" && !counts[name]:
			o.passed++
		}
	}
	switch {
	case o.passed+len(o.failed) == 0:
		return errors.New("the program ran no tests")
	case !passed && len(o.failed) == 0:
		return errors.New("the program failed, and none of its tests did")
	}
	return nil
}

// TestReadPlain: a test with subtests counts by its subtests.
func TestReadPlain(t *testing.T) {
	const out = `
=== RUN   TestA
=== RUN   TestA/one
=== RUN   TestA/two
    a_test.go:1: what went wrong
=== RUN   TestA/three
--- FAIL: TestA (0.00s)
    --- PASS: TestA/one (0.00s)
    --- FAIL: TestA/two (0.00s)
    --- SKIP: TestA/three (0.00s)
=== RUN   TestB
--- PASS: TestB (0.00s)
    --- PASS: TestB/one (0.00s)
=== RUN   TestC
    c_test.go:1: after its subtests
--- FAIL: TestC (0.00s)
    --- PASS: TestC/one (0.00s)
--- PASS: TestD (1.00s)
--- SKIP: TestE (0.00s)
`
	o := outcome{failed: map[string]string{}}
	if err := o.readPlain(out, false); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"TestA/two": "a_test.go:1: what went wrong", "TestC": "c_test.go:1: after its subtests",
	}
	if !maps.Equal(o.failed, want) || o.passed != 4 {
		t.Errorf("%d passed, %q failed; want 4 and %q", o.passed, o.failed, want)
	}
	for _, text := range []string{"", "--- PASS: TestA (0.00s)\npanic: the program ended\n"} {
		if err := new(outcome).readPlain(text, false); err == nil {
			t.Errorf("a program that fails with %q is taken for one that ran", text)
		}
	}
}

// read takes the specs from ginkgo's report.
func (o *outcome) read(report string) error {
	text, err := os.ReadFile(report)
	if err != nil {
		return fmt.Errorf("the suite left no report: %w", err)
	}
	var suites []struct {
		SpecReports []struct {
			ContainerHierarchyTexts    []string
			LeafNodeType, LeafNodeText string
			State                      string
			Failure                    struct{ Message string }
		}
	}
	if err := json.Unmarshal(text, &suites); err != nil {
		return err
	}
	for _, s := range suites {
		for _, spec := range s.SpecReports {
			name := strings.Join(append(spec.ContainerHierarchyTexts, spec.LeafNodeText), " ")
			if spec.LeafNodeType != "It" {
				name = spec.LeafNodeType // of the suite: BeforeSuite, AfterSuite
			}
			switch {
			case spec.State == "skipped" || spec.State == "pending":
			case spec.State != "passed":
				o.failed[name] = spec.State + ": " + spec.Failure.Message
			case spec.LeafNodeType == "It":
				o.passed++
			}
		}
	}
	if o.passed+len(o.failed) == 0 {
		return errors.New("the report has no specs")
	}
	return nil
}

func tail(text string) string { return text[max(0, len(text)-4000):] }
