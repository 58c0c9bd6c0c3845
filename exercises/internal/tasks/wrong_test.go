package tasks

import (
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// wrong is a plausible wrong answer to a task: its solution with a few lines changed.
type wrong struct {
	task Task
	// what says what is wrong.
	what string
	// test is the test that has to fail first, and says a part of its message. Only the race detector sees some.
	test, says string
	race       bool
	// text has the changed files.
	text map[string]string
}

var only = flag.String("task", "", "the tasks whose wrong answers TestWrong tests; empty means all: 07a")

// TestWrong checks that no wrong answer in _wrong passes, and that each fails for its reason. A task has a file there:
//
//	A worker that wakes up does not look again.
//	fails Test8ShutDownEndsTheWorkersThatWait: Three workers waited
//	-	for len(q.order) == 0 {
//	+	if len(q.order) == 0 {
//
// The lines with a space or a minus must stand in the solution once, together. "@@" begins a further change, and
// "@@ name.go" names the file if the task has several. "races" instead of "fails" is for the race detector alone.
//
// Each is a program of its own, so make test-kit runs them, and make race those of the race detector.
func TestWrong(t *testing.T) {
	if os.Getenv("FLYBALL_KIT") == "" && !raceDetector() {
		t.Skip("make test-kit runs it")
	}
	all := loadAll(t)
	solved := replacements(t, all)
	var rounds [][]wrong // each with one wrong answer a task at most
	for _, task := range all {
		if !strings.HasPrefix(task.Name, *only) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, "_wrong", task.Name+".txt"))
		if err != nil {
			t.Error(err)
			continue
		}
		of := readWrong(t, task, string(text))
		if len(of) < 6 {
			t.Errorf("%s has %d wrong answers, want six or more", task.Name, len(of))
		}
		of = slices.DeleteFunc(of, func(w wrong) bool { return w.race != raceDetector() })
		for i, w := range of {
			if i == len(rounds) {
				rounds = append(rounds, nil)
			}
			rounds[i] = append(rounds[i], w)
		}
	}
	count := 0
	for _, round := range rounds {
		replace := maps.Clone(solved)
		these := make([]Task, 0, len(round))
		for _, w := range round {
			these = append(these, w.task)
			for name, text := range w.text {
				file := filepath.Join(t.TempDir(), name)
				if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
				replace[absolute(t, w.task.Name, name)] = file
			}
		}
		args := []string{"-overlay", overlay(t, replace), "-ldflags=-s -w", "-timeout", "5s"}
		if raceDetector() {
			args = append(args, "-race")
		}
		results, err := Run(t.Context(), dir, these, args...)
		if err != nil {
			t.Fatal(err)
		}
		for i, w := range round {
			count++
			if i >= len(results) {
				t.Fatalf("%s was not tested", w.task.Name)
			}
			r := results[i]
			if r.Passed || !r.Compiles || r.Test != w.test || !strings.Contains(r.Message, w.says) {
				t.Errorf("%s: %s\npassed %v, compiles %v, first failure %q, which says:\n%s\nwant %s: %s",
					w.task.Name, w.what, r.Passed, r.Compiles, r.Test, r.Message, w.test, w.says)
			}
		}
	}
	t.Logf("%d wrong answers", count)
}

// readWrong reads a file of _wrong.
func readWrong(t *testing.T, task Task, text string) []wrong {
	t.Helper()
	var all []wrong
	for _, block := range strings.Split(strings.TrimSpace(text), "\n\n") {
		lines := strings.Split(block, "\n")
		w := wrong{task: task, what: lines[0], text: map[string]string{}}
		if len(lines) < 3 {
			t.Fatalf("%s: %q is too short", task.Name, block)
		}
		kind, rest, _ := strings.Cut(lines[1], " ")
		w.test, w.says, _ = strings.Cut(rest, ": ")
		w.race = kind == "races"
		if kind != "fails" && kind != "races" || !slices.Contains(task.Tests, w.test) || w.says == "" {
			t.Fatalf("%s: %q names no test of the task and what it says", task.Name, lines[1])
		}
		name, old, changed := task.Files[0], "", ""
		for _, line := range append(lines[2:], "@@") {
			mark, code := line[:1], line[1:]+"\n"
			switch mark {
			case "@":
				w.change(t, name, old, changed)
				if old, changed = "", ""; len(line) > 3 {
					name = line[3:]
				}
			case " ":
				old, changed = old+code, changed+code
			case "-":
				old += code
			case "+":
				changed += code
			default:
				t.Fatalf("%s: %s: a line begins with %q", task.Name, w.what, mark)
			}
		}
		all = append(all, w)
	}
	return all
}

// change replaces lines of a file, which must stand there once.
func (w *wrong) change(t *testing.T, name, old, changed string) {
	t.Helper()
	if old == "" {
		return // "@@ name.go" at the beginning
	}
	text, ok := w.text[name]
	if !ok {
		solution, err := os.ReadFile(filepath.Join(dir, "_solutions", w.task.Name, name))
		if err != nil {
			t.Fatal(err)
		}
		text = string(solution)
	}
	if n := strings.Count(text, old); n != 1 {
		t.Fatalf("%s: %s: these lines stand in %s %d times, want once:\n%s", w.task.Name, w.what, name, n, old)
	}
	w.text[name] = strings.Replace(text, old, changed, 1)
}

// replacements has the solutions of the files to edit, by the absolute paths of both.
func replacements(t *testing.T, all []Task) map[string]string {
	t.Helper()
	replace := map[string]string{}
	for _, task := range all {
		for _, name := range task.Files {
			solved := absolute(t, "_solutions", task.Name, name)
			if _, err := os.Stat(solved); err != nil {
				t.Fatalf("%s has no solution of %s: %v", task.Name, name, err)
			}
			replace[absolute(t, task.Name, name)] = solved
		}
	}
	return replace
}

func absolute(t *testing.T, path ...string) string {
	t.Helper()
	abs, err := filepath.Abs(filepath.Join(append([]string{dir}, path...)...))
	if err != nil {
		t.Fatal(err)
	}
	return abs
}

// overlay writes a file for go test's flag -overlay.
func overlay(t *testing.T, replace map[string]string) string {
	t.Helper()
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "overlay.json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
