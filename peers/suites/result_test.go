package suites

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/flyball-dev/flyball/internal/testjson"
)

// died is the name under which a suite fails that ends without a report, or with an error though all its specs passed.
const died = "[the suite's process]"

// result is what became of a suite's specs, those of ginkgo and the tests of package testing.
type result struct {
	// passed has the specs' full texts, failed their reasons. What a suite skips is in neither.
	passed map[string]bool
	failed map[string]string
	// unrun is how many did not run, because what prepares the suite failed; that is in failed.
	unrun int
	// output is all that it printed.
	output string
}

func (r *result) all() int { return len(r.passed) + len(r.failed) + r.unrun }

// add notes a spec. Specs of the same text get a number.
func (r *result) add(spec string, passed bool, why string) {
	name := spec
	for i := 2; r.has(name); i++ {
		name = fmt.Sprintf("%s #%d", spec, i)
	}
	if passed {
		r.passed[name] = true
	} else {
		r.failed[name] = why
	}
}

func (r *result) has(spec string) bool { return r.passed[spec] || r.fails(spec) }

func (r *result) fails(spec string) bool {
	_, failed := r.failed[spec]
	return failed
}

// readResult reads what test2json wrote, and the report of ginkgo, of the suite in a folder.
func readResult(events io.Reader, report, folder string) (*result, error) {
	r := &result{passed: map[string]bool{}, failed: map[string]string{}}
	runners, err := runners(folder)
	if err != nil {
		return nil, err
	}
	if err := r.readTests(events, runners); err != nil {
		return nil, fmt.Errorf("read the events of the tests: %w", err)
	}
	text, err := os.ReadFile(report)
	if errors.Is(err, fs.ErrNotExist) {
		r.add(died, false, tail(r.output, 4000))
		return r, nil
	}
	if err != nil {
		return nil, err
	}
	if err := r.readReport(text); err != nil {
		return nil, fmt.Errorf("read ginkgo's report: %w", err)
	}
	return r, nil
}

// runner matches the test that runs ginkgo's specs.
var runner = regexp.MustCompile(`func (Test\w+)\(t \*testing\.T\) \{[^}]*RunSpecs\(`)

// runners are the names of a folder's tests that run ginkgo's specs.
func runners(folder string) (map[string]bool, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		for _, m := range runner.FindAllSubmatch(text, -1) {
			names[string(m[1])] = true
		}
	}
	return names, nil
}

// readTests reads events of package testing.
func (r *result) readTests(events io.Reader, runners map[string]bool) error {
	tests, output, err := testjson.Read(events)
	if err != nil {
		return err
	}
	r.output = output
	for _, t := range tests {
		if !runners[t.Name] && t.Outcome != "skip" {
			r.add(t.Name, t.Outcome == "pass", tail(t.Output, 4000))
		}
	}
	return nil
}

// readReport reads the report of ginkgo. A node that is no spec counts if it fails: the preparation of a suite, say.
func (r *result) readReport(text []byte) error {
	var reports []struct {
		PreRunStats struct{ SpecsThatWillRun int }
		SpecReports []struct {
			ContainerHierarchyTexts                   []string
			LeafNodeType, LeafNodeText, State, Output string
			Failure                                   struct {
				Message, ForwardedPanic string
				Location                struct {
					FileName   string
					LineNumber int
				}
			}
		}
	}
	if err := json.Unmarshal(text, &reports); err != nil {
		return err
	}
	for _, report := range reports {
		for _, s := range report.SpecReports {
			spec := strings.Join(append(s.ContainerHierarchyTexts, s.LeafNodeText), " ")
			if s.LeafNodeType != "It" {
				spec = strings.TrimSpace("[" + s.LeafNodeType + "] " + spec)
			}
			switch {
			case s.State == "skipped" || s.State == "pending":
			case s.State == "passed" && s.LeafNodeType == "It":
				r.add(spec, true, "")
			case s.State != "passed":
				if s.LeafNodeType == "BeforeSuite" {
					r.unrun = report.PreRunStats.SpecsThatWillRun - 1 // it counts as one itself
				}
				at := fmt.Sprintf("%s:%d", filepath.Base(s.Failure.Location.FileName), s.Failure.Location.LineNumber)
				r.add(spec, false,
					fmt.Sprintf("%s at %s: %s %s", s.State, at, s.Failure.Message, s.Failure.ForwardedPanic))
			}
		}
	}
	return nil
}
