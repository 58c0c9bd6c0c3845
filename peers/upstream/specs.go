package upstream

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/onsi/ginkgo/v2/types"
)

// Specs are specs of Kubernetes' e2e.test to run.
type Specs struct {
	// Bin is the folder of e2e.test, ginkgo and kubectl, which [Build] returns.
	Bin string
	// Kubeconfig is a path.
	Kubeconfig string
	// Flags are further ones of ginkgo, and Args further ones of e2e.test.
	Flags, Args []string
	// Env is the environment. Nil: that of this process.
	Env []string
	// Output receives what ginkgo prints.
	Output io.Writer
}

// Run runs the specs. It returns the report of each, without those that were not asked for, and what failed besides
// them. A spec that skips itself has a report.
func (s Specs) Run(ctx context.Context) (reports []types.SpecReport, problems []string, err error) {
	dir, err := os.MkdirTemp("", "flyball-specs-")
	if err != nil {
		return nil, nil, err
	}
	defer os.RemoveAll(dir)
	args := append([]string{"--no-color", "--output-dir=" + dir, "--json-report=report.json"}, s.Flags...)
	args = append(args, filepath.Join(s.Bin, "e2e.test"), "--", "--kubeconfig="+s.Kubeconfig,
		"--kubectl-path="+filepath.Join(s.Bin, "kubectl"), "--provider=skeleton")
	suite := exec.CommandContext(ctx, filepath.Join(s.Bin, "ginkgo"), append(args, s.Args...)...)
	suite.Env, suite.Stdout, suite.Stderr, suite.SysProcAttr = s.Env, s.Output, s.Output, ChildAttributes()
	ended := suite.Run() // it fails if a spec does, which the reports tell
	text, err := os.ReadFile(filepath.Join(dir, "report.json"))
	if err != nil {
		return nil, nil, fmt.Errorf("there is no report: %w; ginkgo: %v", err, ended)
	}
	return readReport(text)
}

func readReport(text []byte) (reports []types.SpecReport, problems []string, err error) {
	var suites []types.Report
	if err := json.Unmarshal(text, &suites); err != nil {
		return nil, nil, fmt.Errorf("read ginkgo's report: %w", err)
	}
	for _, s := range suites {
		problems = append(problems, s.SpecialSuiteFailureReasons...)
		for _, r := range s.SpecReports {
			switch {
			case r.LeafNodeType == types.NodeTypeIt && (r.State != types.SpecStateSkipped || r.Failure.Message != ""):
				reports = append(reports, r)
			case r.LeafNodeType != types.NodeTypeIt && r.Failed():
				problems = append(problems, fmt.Sprintf("%s %s: %s", r.LeafNodeType, r.State, r.Failure.Message))
			}
		}
	}
	return reports, problems, nil
}
