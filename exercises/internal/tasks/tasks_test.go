package tasks

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
)

const dir = "../.."

func loadAll(t *testing.T) []Task {
	t.Helper()
	all, err := Load(dir)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestUnsolved checks the code that the reader starts with. It compiles, and its first failing test has the right
// message: a function is not written yet, or the symptom of the bug.
func TestUnsolved(t *testing.T) {
	all := loadAll(t)
	results, err := Run(t.Context(), dir, all)
	if err != nil {
		t.Fatal(err)
	}
	if len(results) != len(all) {
		t.Fatalf("%d of %d tasks were tested", len(results), len(all))
	}
	for _, r := range results {
		test, says := r.Task.Tests[0], NotWritten
		if bug := r.Task.Bug; bug != nil {
			test, says = bug.Test, bug.Says
		}
		if r.Passed || !r.Compiles || r.Test != test || !strings.Contains(r.Message, says) {
			t.Errorf("%s: passed %v, compiles %v, the first test that fails is %q, which says:\n%s\n"+
				"want %s, which says %q", r.Task.Name, r.Passed, r.Compiles, r.Test, r.Message, test, says)
		}
	}
}

// TestSolved checks that each task passes with its solution. Under the race detector, the tasks run under it, too, and
// vet must find nothing; otherwise both would compile everything a second time.
func TestSolved(t *testing.T) {
	all := loadAll(t)
	overlay := overlay(t, replacements(t, all))
	args := []string{"-overlay", overlay}
	if raceDetector() {
		args = append(args, "-race")
	}
	results, err := Run(t.Context(), dir, all, args...)
	if err != nil {
		t.Fatal(err)
	}
	if len(results) != len(all) {
		t.Fatalf("%d of %d tasks were tested", len(results), len(all))
	}
	for _, r := range results {
		if !r.Passed {
			t.Errorf("the solution of %s fails in %q:\n%s", r.Task.Name, r.Test, r.Message)
		}
	}
	if !raceDetector() {
		return
	}
	cmd := exec.CommandContext(t.Context(), "go", "vet", "-overlay", overlay, "./...")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("go vet of the solutions: %v\n%s", err, out)
	}
}

// raceDetector reports whether this test was built with the race detector.
func raceDetector() bool {
	info, _ := debug.ReadBuildInfo()
	return slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

// TestTasks checks the descriptions in task.json.
func TestTasks(t *testing.T) {
	all := loadAll(t)
	for _, task := range all {
		for i, name := range task.Tests {
			if !regexp.MustCompile(`^Test`+string(rune('1'+i))+`[A-Z]`).MatchString(name) && i < 9 {
				t.Errorf("%s: test %d is %s: number the tests in the order in which they stand", task.Name, i+1, name)
			}
		}
		for _, name := range task.Files {
			text, err := os.ReadFile(filepath.Join(dir, task.Name, name))
			if err != nil {
				t.Error(err)
				continue
			}
			if task.Bug == nil && !strings.Contains(string(text), `panic("`+NotWritten) {
				t.Errorf("%s/%s has no panic(%q…)", task.Name, name, NotWritten)
			}
		}
	}
	if _, err := Find(all, "99"); err == nil {
		t.Error("a task that does not exist was found")
	}
	t.Logf("%d tasks", len(all))
}

// TestReadTest checks that the messages of tests are found among the other output.
func TestReadTest(t *testing.T) {
	for _, c := range []struct{ name, lines, want string }{
		{
			"message", "=== RUN   Test1A\n    a_test.go:3: one\n        two\n--- FAIL: Test1A (0.00s)\n" +
				"panic: deadlock: x", "one\ntwo",
		},
		{
			"panic", "panic: not written yet: Add [recovered, repanicked]\n\ngoroutine 8 [running]:\n" +
				"\t/x/07a-queue/queue.go:32\n\t/x/07a-queue/queue_test.go:5", "not written yet: Add\nat queue.go:32",
		},
		{
			"time-out", "panic: test timed out after 20s\n\t/x/07a-queue/queue_test.go:5\n",
			"The test did not end: something waits forever, or a loop has no end.\nat queue_test.go:5",
		},
		{
			"an endless loop without calls", "panic: test timed out after 20s\n\t/x/07a-queue/queue.go:1 +0x1a0\n",
			"The test did not end: something waits forever, or a loop has no end.\nat queue.go",
		},
		{"deadlock", "panic: deadlock: all goroutines", "A goroutine waits forever, because nothing wakes it.\n"},
		{
			"race", "WARNING: DATA RACE\nWrite at 0x1 by goroutine 8:\n  /x/07a-queue/queue.go:32\n\n" +
				"Previous read at 0x1 by goroutine 7:\n  /go/src/maps.go:1\n  /x/07a-queue/queue.go:40\n\n" +
				"Goroutine 8 (running) created at:\n  /x/07a-queue/queue_test.go:5\n",
			"Two goroutines use the same memory at the same time, and one of them writes it. Guard it.\n" +
				"at queue.go:32\nat queue.go:40",
		},
		{
			"race and message", "=== RUN   Test1A\n    a_test.go:3: one\nWARNING: DATA RACE\n" +
				"Write at 0x1 by goroutine 8:\n  /x/07a-queue/queue.go:32\n\n" +
				"Previous read at 0x1 by goroutine 7:\n  /x/07a-queue/queue.go:40\n\n" +
				"fatal error: concurrent map read and map write",
			"Two goroutines use the same memory at the same time, and one of them writes it. Guard it.\n" +
				"at queue.go:32\nat queue.go:40\none",
		},
		{
			"map", "fatal error: concurrent map writes\n\t/x/07a-queue/queue.go:32",
			"Two goroutines use the same memory at the same time, and one of them writes it. Guard it.\nat queue.go:32",
		},
	} {
		if got := readTest(strings.Split(c.lines, "\n"), "07a-queue"); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}
