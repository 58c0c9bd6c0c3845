package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/exercises/internal/tasks"
)

const exercises = "../.."

// shown returns the output of learn for a folder.
func shown(t *testing.T, dir string, o options) string {
	t.Helper()
	var out strings.Builder
	if err := learn(t.Context(), dir, o, &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// module makes a module of two tasks with these files to edit.
func module(t *testing.T, first, second string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "exercises")
	task := `{"title": "%s", "chapter": "01-control-loop", "files": ["x.go"], "given": ["` +
		tasks.Hash([]byte(unwritten)) + `"], "minutes": 5, "hints": ["look", "look again"]}`
	for name, text := range map[string]string{
		"go.mod":            "module example.com/x\n\ngo 1.26.0\n",
		"01a-one/task.json": fmt.Sprintf(task, "One"),
		"01a-one/x.go":      first,
		"01a-one/x_test.go": test,
		"01b-two/task.json": fmt.Sprintf(task, "Two"),
		"01b-two/x.go":      second,
		"01b-two/x_test.go": test,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

const (
	test = `package x

import "testing"

func Test1One(t *testing.T) {
	if got := One(); got != 1 {
		t.Errorf("One returned %d. It should be 1.", got)
	}
}

func Test2Two(t *testing.T) {
	if got := One() + One(); got != 2 {
		t.Errorf("Twice One is %d.", got)
	}
}
`
	unwritten = "package x\n\nfunc One() int { panic(\"not written yet: One\") }\n"
	solved    = "package x\n\nfunc One() int { return 1 }\n"
	wrong     = "package x\n\nfunc One() int { return 3 }\n"
	counts    = "package x\n\nvar n = 0\n\nfunc One() int { n++; return n }\n"
	noGo      = "package x\n\nfunc One() int { return on }\n"
	racing    = `package x

func One() int {
	n, c := 0, make(chan bool)
	go func() { n = 1; c <- true }()
	n = 1
	<-c
	return n
}
`
)

// TestLearn checks that a reader sees the first task that is not done, and why.
func TestLearn(t *testing.T) {
	for _, c := range []struct {
		name, first, second string
		options             options
		want, not           []string
	}{
		{"at the beginning", unwritten, unwritten, options{}, []string{
			"0 of 2 tasks", "01a-one", "docs/book/01-control-loop.md", "edit   exercises/01a-one/x.go", "Test1One",
			"not written yet: One\n    at x.go:3", "HINT=1",
		}, []string{"01b-two", "Hint"}},
		{"a task later", solved, unwritten, options{}, []string{"1 of 2 tasks", "01b-two"}, []string{"01a-one"}},
		{"wrong code", wrong, unwritten, options{hint: 1}, []string{
			"0 of 2 tests pass", "One returned 3. It should be 1.", "Hint 1: look\n", "HINT=2",
		}, []string{"again", "FAIL"}},
		{"code that does not compile", noGo, unwritten, options{}, []string{
			"does not compile", "01a-one/x.go:3:25: undefined: on",
		}, nil},
		{"one task", unwritten, solved, options{task: "01b"}, []string{"01b-two: all"}, nil},
		{"a hint for one task", solved, unwritten, options{task: "01b", hint: 1}, []string{
			"For another hint, run: make learn TASK=01b HINT=2",
		}, nil},
		{"all hints", unwritten, solved, options{hint: 9}, []string{"look again", "_solutions/01a-one"}, nil},
		{"the end", solved, solved, options{}, []string{"2 of 2 tasks", "All tasks are done"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := shown(t, module(t, c.first, c.second), c.options)
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("there is no %q in\n%s", want, got)
				}
			}
			for _, not := range c.not {
				if strings.Contains(got, not) {
					t.Errorf("there is %q in\n%s", not, got)
				}
			}
		})
	}
}

// TestReport checks the results of all tasks.
func TestReport(t *testing.T) {
	want := `{
  "tasks": [
    {
      "task": "01a-one",
      "title": "One",
      "chapter": "01-control-loop",
      "state": "not yet",
      "passed": false,
      "compiles": false,
      "testsPassed": 0,
      "tests": 2,
      "message": "01a-one/x.go:3:25: undefined: on"
    },
    {
      "task": "01b-two",
      "title": "Two",
      "chapter": "01-control-loop",
      "state": "not yet",
      "passed": false,
      "compiles": true,
      "testsPassed": 1,
      "tests": 2,
      "failed": "Test2Two",
      "message": "Twice One is 5."
    }
  ],
  "total": {
    "passed": 0,
    "tasks": 2,
    "testsPassed": 1,
    "tests": 4
  }
}
`
	if got := shown(t, module(t, noGo, counts), options{report: true}); got != want {
		t.Errorf("the report is\n%s\nwant\n%s", got, want)
	}
}

// TestStates checks that learn records where the reader stands, and forgets nothing when it tests one task.
func TestStates(t *testing.T) {
	dir := module(t, solved, unwritten)
	for _, c := range []struct{ text, want string }{
		{unwritten, "not tried"}, {wrong, "not yet"}, {solved, "solved"},
	} {
		if err := os.WriteFile(filepath.Join(dir, "01b-two", "x.go"), []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		shown(t, dir, options{})
		shown(t, dir, options{task: "01a"})
		want := fmt.Sprintf("{\n  \"01a-one\": \"solved\",\n  \"01b-two\": %q\n}", c.want)
		if got, err := os.ReadFile(filepath.Join(dir, "../bin/learn.json")); err != nil || string(got) != want {
			t.Errorf("recorded are %s, %v, want %s", got, err, want)
		}
	}
}

// TestAnyOrder checks that a task counts as solved also if one before it is not.
func TestAnyOrder(t *testing.T) {
	dir := module(t, unwritten, solved)
	shown(t, dir, options{task: "01b"})
	got := shown(t, dir, options{})
	if !strings.Contains(got, "1 of 2 tasks") || !strings.Contains(got, "01a-one") {
		t.Errorf("01b is solved, and 01a is not:\n%s", got)
	}
}

// TestReset checks that a task is put back as it was given, and that nothing of the reader is lost.
func TestReset(t *testing.T) {
	dir := module(t, unwritten, solved)
	for _, args := range []string{"init -q", "hash-object -w 01a-one/x.go"} {
		cmd := exec.CommandContext(t.Context(), "git", strings.Fields(args)...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %s: %v\n%s", args, err, out)
		}
	}
	file := filepath.Join(dir, "01a-one", "x.go")
	for _, text := range []string{wrong, solved} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		shown(t, dir, options{reset: "01a"})
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	shown(t, dir, options{reset: "01a"})
	if got := shown(t, dir, options{reset: "01a"}); got != "01a-one/x.go is as it was given. Nothing has changed.\n" {
		t.Errorf("a second time, it says %q", got)
	}
	for name, want := range map[string]string{"x.go": unwritten, "x.go.1": wrong, "x.go.2": solved} {
		if got, err := os.ReadFile(filepath.Join(dir, "01a-one", name)); err != nil || string(got) != want {
			t.Errorf("%s: %v, %q, want %q", name, err, got, want)
		}
	}
}

// TestRace checks that with the race detector the reader sees where memory is not guarded, without stacks. It runs only
// under the race detector, because otherwise the standard library would have to be compiled for it.
func TestRace(t *testing.T) {
	info, _ := debug.ReadBuildInfo()
	if !slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		t.Skip("make race runs it")
	}
	dir := module(t, racing, solved)
	if got := shown(t, dir, options{}); !strings.Contains(got, "2 of 2 tasks") {
		t.Errorf("without the race detector:\n%s", got)
	}
	got := shown(t, dir, options{race: true})
	for _, want := range []string{"one of them writes it. Guard it.\n", "    at x.go:5\n", "    at x.go:6\n"} {
		if !strings.Contains(got, want) || strings.Contains(got, "goroutine ") {
			t.Errorf("with the race detector there is no %q, or a stack, in\n%s", want, got)
		}
	}
}

// TestFlags checks that bad flags are rejected before anything is tested.
func TestFlags(t *testing.T) {
	for _, args := range [][]string{{"-hint", "-1"}, {"-hint", "x"}, {"07a"}, {"-no"}, {"-capstone", "x"}} {
		if err := run(t.Context(), args, &strings.Builder{}); err == nil {
			t.Errorf("%q was taken", args)
		}
	}
	if err := learn(t.Context(), exercises, options{task: "99"}, &strings.Builder{}); err == nil ||
		!strings.Contains(err.Error(), "07a-queue") {
		t.Errorf("a task that does not exist: %v, want the names of those that do", err)
	}
}

func TestWrap(t *testing.T) {
	for line := range strings.SplitSeq(wrap(strings.Repeat("word ", 100)), "\n") {
		if len(line) > 80 {
			t.Errorf("a line of %d columns", len(line))
		}
	}
}
