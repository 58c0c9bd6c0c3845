// Package chapter13 runs the controller of exercises/13-capstone with the solutions of its parts, and shows what it
// does.
package chapter13

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/docs/book/internal/book"
)

const page = "13-capstone"

// run runs a test of exercises/13-capstone, and returns what it logs. The parts are the solutions; wrong replaces the
// text of the solution with that path.
func run(t *testing.T, test, path string, wrong func(solution string) string) (logged string, passed bool) {
	t.Helper()
	exercises, err := filepath.Abs(filepath.Join(book.Dir(), "../../exercises"))
	if err != nil {
		t.Fatal(err)
	}
	replace := map[string]string{}
	solutions, err := filepath.Glob(filepath.Join(exercises, "_solutions", "*", "*.go"))
	if err != nil || len(solutions) == 0 {
		t.Fatalf("there are no solutions: %v", err)
	}
	for _, file := range solutions {
		text, err := os.ReadFile(file) // Also so that go test knows on what this test depends.
		if err != nil {
			t.Fatal(err)
		}
		of, _ := filepath.Rel(filepath.Join(exercises, "_solutions"), file)
		if filepath.ToSlash(of) == path {
			changed := wrong(string(text))
			if changed == string(text) {
				t.Fatalf("the wrong answer changes nothing in %s", path)
			}
			file = filepath.Join(t.TempDir(), "wrong.go")
			if err := os.WriteFile(file, []byte(changed), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		replace[filepath.Join(exercises, of)] = file
	}
	overlay := filepath.Join(t.TempDir(), "overlay.json")
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err == nil {
		err = os.WriteFile(overlay, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-v", "-overlay", overlay,
		"-run", "^"+test+"$", ".")
	cmd.Dir = filepath.Join(exercises, "13-capstone")
	out, err := cmd.CombinedOutput()
	var lines []string
	for line := range strings.Lines(string(out)) {
		if text, ok := strings.CutPrefix(line, "    "); ok {
			lines = append(lines, strings.TrimPrefix(place.ReplaceAllString(text, ""), "    "))
		}
	}
	logged = strings.TrimRight(strings.Join(lines, ""), "\n")
	if logged == "" {
		t.Fatalf("%v: %s", err, out)
	}
	return logged, err == nil
}

// TestChapter13Run shows a life of the controller.
func TestChapter13Run(t *testing.T) {
	text, passed := run(t, "TestRun", "", nil)
	if !passed || strings.Count(text, "controller") < 5 {
		t.Errorf("the run failed:\n%s", text)
	}
	_, text, _ = strings.Cut(text, "\n")
	book.Trace(t, page, text)
}

// place is where a test logs a line.
var place = regexp.MustCompile(`^\w+_test\.go:\d+: `)

// TestChapter13Wrong shows what simtest finds if the loop gives up a key that failed.
func TestChapter13Wrong(t *testing.T) {
	text, passed := run(t, "TestScore", "08a-loop/loop.go", func(solution string) string {
		return strings.Replace(solution, "l.Queue.AddRateLimited(key)", "l.Queue.Forget(key)", 1)
	})
	if passed {
		t.Error("a loop that never tries again was not found")
	}
	_, text, _ = strings.Cut(text, "\nsimtest: same end")
	text, _, _ = strings.Cut("simtest: same end"+text, "\n\n")
	book.Trace(t, page, text)
}
