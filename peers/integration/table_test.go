package integration

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/flyball-dev/flyball/internal/docblock"
	"github.com/flyball-dev/flyball/internal/testjson"
	"github.com/flyball-dev/flyball/peers/upstream"
)

// target names the tables of a whole run in the documents.
const target = "make test-integration"

// suite is some folders of tests, which are built with the same edits.
type suite struct {
	folders []string
	// document has the table of the results.
	document string
}

// run runs the tests of each folder and compares their failures with the exceptions. It prints a table of the results,
// and writes it to the document if all folders ran. Several folders run at once, because most of their time an API
// server waits a minute for watches to end before it stops.
func (s suite) run(t *testing.T, command func(t *testing.T, folder string) *exec.Cmd) {
	list, rows := readExceptions(t), make([]string, len(s.folders))
	t.Cleanup(func() {
		text := fmt.Sprintf("%s, Kubernetes %s, %d cores, %s.\n\n", time.Now().UTC().Format(time.DateOnly),
			upstream.Version, runtime.NumCPU(), runtime.Version()) +
			"| folder | passed | skipped | time | what fails, and why |\n" +
			"|---|---|---|---|---|\n" + strings.Join(rows, "")
		fmt.Print(text)
		if !slices.Contains(rows, "") {
			if err := docblock.Write(s.document, target, text); err != nil {
				t.Error(err)
			}
		}
	})
	for i, folder := range s.folders {
		t.Run(strings.ReplaceAll(folder, "/", "-"), func(t *testing.T) {
			t.Parallel()
			cmd, start := command(t, folder), time.Now()
			tests := results(t, cmd)
			for _, problem := range judge(list, folder, tests) {
				t.Error(problem)
			}
			rows[i] = row(list, folder, tests, time.Since(start))
		})
	}
}

// died is the name under which a run fails that ends with an error though all its tests pass.
const died = "[the process]"

// results runs a command that reports as test2json does. FLYBALL_INTEGRATION_LOG names a folder for its output.
func results(t *testing.T, cmd *exec.Cmd) []testjson.Test {
	t.Helper()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	tests, output, err := testjson.Read(out)
	status := cmd.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if log := os.Getenv("FLYBALL_INTEGRATION_LOG"); log != "" {
		name := strings.ReplaceAll(t.Name(), "/", "-") + ".log"
		if err := os.WriteFile(log+"/"+name, []byte(output), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if status != nil && !slices.ContainsFunc(tests, func(test testjson.Test) bool { return test.Outcome == "fail" }) {
		tests = append(tests, testjson.Test{Name: died, Outcome: "fail", Output: output})
	}
	return tests
}

// row is a folder's line of the table. A failure that is not expected is named itself.
func row(list []exception, folder string, tests []testjson.Test, took time.Duration) string {
	count := map[string]int{}
	var reasons []string
	for _, test := range tests {
		count[test.Outcome]++
		if test.Outcome != "fail" {
			continue
		}
		reason := "not expected: " + test.Name
		if e := find(list, folder, test.Name); e != nil {
			reason = e.Reason
		}
		if !slices.Contains(reasons, reason) {
			reasons = append(reasons, reason)
		}
	}
	return fmt.Sprintf("| %s | %d of %d | %d | %s | %s |\n", folder, count["pass"], count["pass"]+count["fail"],
		count["skip"], took.Round(time.Second), strings.Join(reasons, "; "))
}

// TestTablesAreWhole: the table has a row for each folder, with the reasons of all its exceptions.
func TestTablesAreWhole(t *testing.T) {
	list := readExceptions(t)
	for _, s := range []suite{controllers, served} {
		text, err := docblock.Read(s.document, target)
		if err != nil {
			t.Fatal(err)
		}
		for _, folder := range s.folders {
			_, rest, found := strings.Cut("\n"+text, "\n| "+folder+" | ")
			row, _, _ := strings.Cut(rest, "\n")
			if !found || strings.Contains(row, "not expected: ") {
				t.Errorf("%s has no good row for %s: %q", s.document, folder, row)
			}
			for _, e := range list {
				if e.Folder == folder && !e.Sometimes && !strings.Contains(row, e.Reason) {
					t.Errorf("the row of %s in %s does not have the reason %q", folder, s.document, e.Reason)
				}
			}
		}
	}
	for _, e := range list {
		if !slices.Contains(slices.Concat(controllers.folders, served.folders), e.Folder) {
			t.Errorf("no folder is meant by %+v", e)
		}
	}
}
