// Command learn shows a reader's progress in the tasks of the book: which task is next, which of its tests fails, and
// with which message. It runs in the folder exercises; make learn runs it there.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/flyball-dev/flyball/exercises/internal/tasks"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	switch err := run(ctx, os.Args[1:], os.Stdout); {
	case errors.Is(err, flag.ErrHelp):
	case errors.Is(err, context.Canceled):
		fmt.Println()
		os.Exit(130)
	case err != nil:
		fmt.Fprintln(os.Stderr, "learn:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	task  string
	hint  int
	watch bool
	race  bool
	// capstone is "1" for the controller of chapter 13, "mine" to test parts that fail their tests, too, or "".
	capstone string
	report   bool
	reset    string // the task to put back as it was given
}

func run(ctx context.Context, args []string, out io.Writer) error {
	var o options
	flags := flag.NewFlagSet("learn", flag.ContinueOnError)
	flags.SetOutput(out)
	flags.StringVar(&o.task, "task", "", "test only this task: 07a, for example")
	flags.IntVar(&o.hint, "hint", 0, "show this many hints")
	flags.BoolVar(&o.watch, "watch", false, "test again whenever a file is saved")
	flags.BoolVar(&o.race, "race", tasks.CanRace(), "test with the race detector, which needs a C compiler")
	flags.StringVar(&o.capstone, "capstone", "",
		"build and score the controller of chapter 13: 1, or mine for your parts even if their tests fail")
	flags.BoolVar(&o.report, "report", false, "print the results of all tasks as JSON")
	flags.StringVar(&o.reset, "reset", "", "put this task back as it was given, and keep yours beside it")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if flags.NArg() > 0 || o.hint < 0 || !slices.Contains([]string{"", "1", "mine"}, o.capstone) {
		return fmt.Errorf("want make learn, with HINT=1, TASK=07a, WATCH=1, RACE=0, REPORT=1 or RESET=07a, not %q",
			args)
	}
	return learn(ctx, ".", o, out)
}

// learn shows the reader's progress, once or after each time that a file is saved.
func learn(ctx context.Context, dir string, o options, out io.Writer) error {
	all, err := tasks.Load(dir)
	if err != nil {
		return err
	}
	switch {
	case o.capstone != "":
		return capstone(ctx, dir, all, o.capstone == "mine", out)
	case o.reset != "":
		t, err := tasks.Find(all, o.reset)
		if err != nil {
			return err
		}
		return reset(ctx, dir, t, out)
	}
	for {
		seen := saved(dir)
		if o.watch {
			fmt.Fprint(out, "\x1b[H\x1b[2J")
		}
		if err := show(ctx, dir, all, o, out); err != nil {
			return err
		}
		if !o.watch {
			return nil
		}
		fmt.Fprintln(out, "\nWaiting for a file to be saved. Press Ctrl-C to stop.")
		for saved(dir).Equal(seen) {
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-time.After(300 * time.Millisecond):
			}
		}
	}
}

// saved returns the time of the last write to a Go file in the folder.
func saved(dir string) (last time.Time) {
	_ = filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".go") {
			if info, err := d.Info(); err == nil && info.ModTime().After(last) {
				last = info.ModTime()
			}
		}
		return nil
	})
	return last
}

// show tests the tasks up to the first that fails, and describes what to do next. A report is about all.
func show(ctx context.Context, dir string, all []tasks.Task, o options, out io.Writer) error {
	var args []string
	if o.race {
		args = append(args, "-race")
	}
	if o.task != "" {
		one, err := tasks.Find(all, o.task)
		if err != nil {
			return err
		}
		all = []tasks.Task{one}
	}
	if o.report {
		results, _, err := runAndRecord(ctx, dir, all, args...)
		if err != nil {
			return err
		}
		return write(out, dir, results)
	}
	args = append(args, "-failfast")
	if o.task != "" {
		results, _, err := runAndRecord(ctx, dir, all, args...)
		switch {
		case err != nil:
			return err
		case results[0].Passed:
			fmt.Fprintf(out, "%s: all %d tests pass.\n", all[0].Name, len(all[0].Tests))
		default:
			next(out, results[0], o)
		}
		return nil
	}
	for done := 0; done < len(all); {
		results, states, err := runAndRecord(ctx, dir, tasks.UpTo(dir, all, done), args...)
		if err != nil {
			return err
		}
		for _, r := range results {
			if !r.Passed {
				for _, later := range all[done:] { // A reader may choose the order.
					if states[later.Name] == "solved" {
						done++
					}
				}
				progress(out, done, len(all))
				next(out, r, o)
				return nil
			}
			done++
		}
	}
	progress(out, len(all), len(all))
	fmt.Fprintln(out, "All tasks are done. You have built every stage of a controller.")
	fmt.Fprintln(out, "make learn CAPSTONE=1 puts them together and runs the whole.")
	return nil
}

// runAndRecord runs the tests of tasks, and records the results for flyball learn. It returns the states of all tasks
// that are recorded, too.
func runAndRecord(ctx context.Context, dir string, these []tasks.Task, args ...string,
) ([]tasks.Result, map[string]string, error) {
	results, err := tasks.Run(ctx, dir, these, args...)
	if err != nil {
		return nil, nil, err
	}
	states, err := record(dir, results)
	return results, states, err
}

func progress(out io.Writer, done, all int) {
	const width = 32
	full := width * done / all
	fmt.Fprintf(out, "%s%s  %d of %d tasks\n\n", strings.Repeat("█", full), strings.Repeat("░", width-full), done, all)
}

// next describes the task to work on.
func next(out io.Writer, r tasks.Result, o options) {
	t := r.Task
	fmt.Fprintf(out, "%s  %s  (about %d minutes)\n\n", t.Name, t.Title, t.Minutes)
	fmt.Fprintf(out, "  read   docs/book/%s.md\n", t.Chapter)
	for _, name := range t.Files {
		fmt.Fprintf(out, "  edit   exercises/%s/%s\n", t.Name, name)
	}
	switch {
	case !r.Compiles:
		fmt.Fprint(out, "\nThe code does not compile:\n\n")
	case r.Test == "":
		fmt.Fprint(out, "\nThe tests end with an error:\n\n")
	default:
		fmt.Fprintf(out, "\n%d of %d tests pass. The next one, %s, fails:\n\n", r.Done, len(t.Tests), r.Test)
	}
	for line := range strings.SplitSeq(strings.TrimRight(r.Message, "\n"), "\n") {
		fmt.Fprintf(out, "    %s\n", line)
	}
	fmt.Fprintln(out)
	for i, hint := range t.Hints[:min(o.hint, len(t.Hints))] {
		fmt.Fprintf(out, "%s\n\n", wrap(fmt.Sprintf("Hint %d: %s", i+1, hint)))
	}
	same := "" // the argument that makes the suggested command test the same task
	if o.task != "" {
		same = " TASK=" + o.task
	}
	if o.hint < len(t.Hints) {
		which := "a"
		if o.hint > 0 {
			which = "another"
		}
		fmt.Fprintf(out, "For %s hint, run: make learn%s HINT=%d (of %d)\n", which, same, o.hint+1, len(t.Hints))
	} else {
		fmt.Fprintf(out, "There are no more hints. A solution is in exercises/_solutions/%s.\n", t.Name)
	}
}

// wrap breaks a text into lines of at most 80 columns.
func wrap(text string) string {
	const most = 80
	var b strings.Builder
	column := 0
	for i, word := range strings.Fields(text) {
		switch {
		case i == 0:
		case column+1+len(word) > most:
			b.WriteByte('\n')
			column = 0
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += len(word)
	}
	return b.String()
}
