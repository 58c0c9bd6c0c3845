package others

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
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
func run(t *testing.T, program, dir, kubeconfig string, args []string) outcome {
	t.Helper()
	report := filepath.Join(t.TempDir(), "report.json")
	args = append([]string{"-test.timeout=" + limit.String(), "-ginkgo.no-color", "-ginkgo.json-report=" + report},
		args...)
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "USE_EXISTING_CLUSTER=true", "KUBECONFIG="+kubeconfig)
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
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatalf("the suite left no report: %v\n%s", err, tail(out.String()))
	}
	if err := o.read(text); err != nil {
		t.Fatalf("%v\n%s", err, tail(out.String()))
	}
	return o
}

// read takes the specs from ginkgo's report.
func (o *outcome) read(report []byte) error {
	var suites []struct {
		SpecReports []struct {
			ContainerHierarchyTexts    []string
			LeafNodeType, LeafNodeText string
			State                      string
			Failure                    struct{ Message string }
		}
	}
	if err := json.Unmarshal(report, &suites); err != nil {
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
