package tasks

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strings"
	"time"
)

// TimeOut is how long the tests of a task may take. They need less than a second, unless the reader's code never ends.
const TimeOut = 20 * time.Second

// A Result is the outcome of the tests of one task.
type Result struct {
	Task   Task
	Passed bool
	// Done is how many tests passed.
	Done int
	// Test is the first test that failed; empty if the code does not compile or the program ended outside of a test.
	Test string
	// Compiles is false if the code does not compile. Message then has the errors of the compiler.
	Compiles bool
	// Message describes the failure in a few lines, without stacks.
	Message string
}

// State returns where the reader stands: "solved", "not yet", or "not tried" if the files to edit are as they were
// given.
func (r Result) State(dir string) string {
	switch {
	case r.Passed:
		return "solved"
	case r.Task.untouched(dir):
		return "not tried"
	}
	return "not yet"
}

// Run tests the tasks, with args as further arguments of go test, and returns the results in order, at least one. With
// -failfast, go test stops at the first failure, and the tasks after it have no result.
func Run(ctx context.Context, dir string, these []Task, args ...string) ([]Result, error) {
	command := append([]string{"test", "-json", "-vet=off", "-timeout", TimeOut.String()}, args...)
	for _, t := range these {
		command = append(command, "./"+t.Name)
	}
	cmd := exec.CommandContext(ctx, "go", command...)
	cmd.Dir = dir
	inGroup(cmd) // so that the test ends with go
	cmd.WaitDelay = 5 * time.Second
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	logs := collect(&out)
	results := make([]Result, 0, len(these))
	for _, t := range these {
		log := logs[t.Name]
		if log == nil || !log.ended {
			break
		}
		results = append(results, log.result(t))
	}
	switch {
	case len(results) > 0:
		return results, nil
	case len(these) > 1: // A later task has failed before the first was tested.
		return Run(ctx, dir, these[:1], args...)
	default:
		return nil, fmt.Errorf("run go test for %s: %w\n%s", these[0].Name, err, &errs)
	}
}

// CanRace reports whether go test can use the race detector here: it needs a C compiler.
func CanRace() bool {
	out, err := exec.Command("go", "env", "CGO_ENABLED", "CC").Output()
	enabled, compiler, _ := strings.Cut(strings.TrimSpace(string(out)), "\n")
	if err != nil || enabled != "1" {
		return false
	}
	_, err = exec.LookPath(compiler)
	return err == nil
}

// log has the output of go test for a package.
type log struct {
	ended, passed bool
	done          int
	failed        string
	// build has the lines of the compiler, and tests those of each test; "" has the lines outside of tests.
	build []string
	tests map[string][]string
	began []string
}

// event is a line of go test -json.
type event struct {
	Action, Package, ImportPath, Test, Output string
	// FailedBuild is the package that did not compile, if the test failed because of it.
	FailedBuild string
}

func collect(out *bytes.Buffer) map[string]*log {
	logs := map[string]*log{}
	of := func(pkg string) *log {
		pkg, _, _ = strings.Cut(pkg, " ") // "path [path.test]"
		name := strings.TrimSuffix(path.Base(pkg), "_test")
		if logs[name] == nil {
			logs[name] = &log{tests: map[string][]string{}}
		}
		return logs[name]
	}
	scanner := bufio.NewScanner(out)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var e event
		if json.Unmarshal(scanner.Bytes(), &e) != nil {
			continue
		}
		if e.Action == "build-output" {
			l := of(e.ImportPath)
			l.build = append(l.build, strings.TrimRight(e.Output, "\n"))
			continue
		}
		if e.Package == "" {
			continue
		}
		l := of(e.Package)
		switch e.Action {
		case "run":
			l.began = append(l.began, e.Test)
		case "output":
			l.tests[e.Test] = append(l.tests[e.Test], strings.TrimRight(e.Output, "\n"))
		case "pass":
			if e.Test == "" {
				l.passed, l.ended = true, true
			} else if !strings.Contains(e.Test, "/") {
				l.done++
			}
		case "fail":
			switch {
			case e.Test == "":
				l.ended = true
				if len(l.build) == 0 && e.FailedBuild != "" { // It imports a package that does not compile.
					l.build = of(e.FailedBuild).build
				}
			case !strings.Contains(e.Test, "/") && l.failed == "":
				l.failed = e.Test
			}
		}
	}
	return logs
}

func (l *log) result(t Task) Result {
	r := Result{Task: t, Passed: l.passed, Compiles: true, Done: l.done, Test: l.failed}
	switch {
	case l.passed:
		r.Done = len(t.Tests)
	case len(l.build) > 0:
		r.Compiles = false
		r.Message = readCompiler(l.build)
	default:
		if r.Test == "" && len(l.began) > 0 { // The program has ended in this test.
			r.Test = l.began[len(l.began)-1]
		}
		lines := l.tests[r.Test]
		for test, more := range l.tests {
			if strings.HasPrefix(test, r.Test+"/") {
				lines = append(lines, more...)
			}
		}
		r.Message = readTest(append(lines, l.tests[""]...), t.Name)
	}
	return r
}

func readCompiler(lines []string) string {
	var kept []string
	for _, line := range lines {
		if line != "" && !strings.HasPrefix(line, "#") {
			kept = append(kept, line)
		}
	}
	return strings.Join(kept, "\n")
}

var (
	logged = regexp.MustCompile(`^    (?:    )*(\w+_test\.go:\d+): (.*)`)
	noise  = regexp.MustCompile(`^(\s*(===|---) |FAIL|ok\s|exit status|coverage:)`)
)

const (
	dataRace  = "WARNING: DATA RACE"
	unguarded = "Two goroutines use the same memory at the same time, and one of them writes it. Guard it."
)

// readTest returns the useful part of the output of a failed test: the messages of the test or, if the program crashed,
// the reason and the line in the reader's code. A race comes first, because it may be why the test says the rest.
func readTest(lines []string, name string) string {
	var said []string
	if at := slices.Index(lines, dataRace); at >= 0 {
		said = append(said, unguarded, racing(lines[at+1:], name))
	}
	within := false
	for _, line := range lines {
		if m := logged.FindStringSubmatch(line); m != nil {
			said, within = append(said, m[2]), true
		} else if within && strings.HasPrefix(line, "        ") {
			said = append(said, strings.TrimPrefix(line, "        "))
		} else {
			within = false
		}
	}
	if len(said) > 0 {
		return strings.Join(said, "\n")
	}
	for i, line := range lines {
		reason, isPanic := strings.CutPrefix(line, "panic: ")
		fatal, isFatal := strings.CutPrefix(line, "fatal error: ")
		switch {
		case isPanic && strings.HasPrefix(reason, "test timed out"):
			return "The test did not end: something waits forever, or a loop has no end.\n" + where(lines[i:], name)
		case isPanic && strings.HasPrefix(reason, "deadlock"):
			return "A goroutine waits forever, because nothing wakes it.\n" + where(lines[i:], name)
		case isPanic:
			reason, _, _ = strings.Cut(reason, " [recovered")
			return reason + "\n" + where(lines[i:], name)
		case isFatal && strings.HasPrefix(fatal, "concurrent map"):
			return unguarded + "\n" + where(lines[i:], name)
		case isFatal:
			return "The program crashed: " + fatal + ".\n" + where(lines[i:], name)
		}
	}
	for _, line := range lines {
		if !noise.MatchString(line) && line != "" {
			said = append(said, line)
		}
	}
	return strings.Join(said, "\n")
}

// racing returns the positions of the two goroutines. A report of the race detector begins with their stacks, and each
// stack ends with an empty line.
func racing(report []string, name string) string {
	var places []string
	for range 2 {
		end := slices.Index(report, "")
		if end < 0 {
			break
		}
		places = append(places, where(report[:end], name))
		report = report[end+1:]
	}
	return strings.Join(places, "\n")
}

// where returns the first position in a stack that is in the reader's code, or else in the test. The race detector may
// put an endless loop without calls on line 1, which is a comment in every task; the file alone is then right.
func where(stack []string, name string) string {
	place := regexp.MustCompile(regexp.QuoteMeta(name) + `/(\w+\.go:\d+)`)
	test := ""
	for _, line := range stack {
		m := place.FindStringSubmatch(line)
		switch {
		case m == nil:
		case !strings.Contains(m[1], "_test.go"):
			if file, ok := strings.CutSuffix(m[1], ":1"); ok {
				return "at " + file
			}
			return "at " + m[1]
		case test == "":
			test = "at " + m[1]
		}
	}
	return test
}
