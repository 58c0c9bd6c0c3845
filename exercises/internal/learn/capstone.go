package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"

	"github.com/flyball-dev/flyball/exercises/internal/tasks"
)

// place is where a test logs a line.
var place = regexp.MustCompile(`^\w+_test\.go:\d+: `)

// capstone says which parts of the controller of chapter 13 are the reader's, builds it, and lets simtest score it.
func capstone(ctx context.Context, dir string, all []tasks.Task, mine bool, out io.Writer) error {
	parts, err := tasks.Parts(ctx, dir, all, mine)
	if err != nil {
		return err
	}
	fmt.Fprint(out, "The parts of your controller:\n\n")
	for _, r := range parts {
		from := "from the solutions: not written yet"
		switch {
		case r.Passed:
			from = "yours"
		case r.Test != "":
			from = "from the solutions: " + r.Test + " fails"
		case r.Message != "":
			from = "from the solutions: it does not compile"
		}
		fmt.Fprintf(out, "  %-14s  %s\n", r.Task.Name, from)
	}
	overlay, err := tasks.Overlay(dir, parts)
	if err != nil {
		return err
	}
	bin := filepath.Join(dir, "..", "bin")
	if err := os.MkdirAll(bin, 0o750); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(bin, "capstone.json"), overlay, 0o600); err != nil {
		return err
	}
	goCommand := func(args ...string) ([]byte, error) {
		args = slices.Insert(args, 1, "-overlay", "../../bin/capstone.json")
		cmd := exec.CommandContext(ctx, "go", args...)
		cmd.Dir = filepath.Join(dir, "13-capstone")
		return cmd.CombinedOutput()
	}
	if text, err := goCommand("build", "-o", "../../bin/capstone", "./run"); err != nil {
		return fmt.Errorf("build the controller: %w\n%s", err, text)
	}
	fmt.Fprint(out, "\nIt is built: bin/capstone. Now simtest kills it after every write, and does worse:\n\n")
	text, err := goCommand("test", "-vet=off", "-count=1", "-v", "-run", "^TestScore$", ".")
	for line := range bytes.Lines(text) {
		if said, ok := bytes.CutPrefix(line, []byte("    ")); ok {
			fmt.Fprintf(out, "  %s", place.ReplaceAll(said, nil))
		}
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err == nil:
		fmt.Fprint(out, "\nNothing found. To run it, see docs/book/13-capstone.md.\n")
	case bytes.Contains(text, []byte("--- FAIL")):
		fmt.Fprint(out, "\nRead the story from the top. Which part should have prevented it?\n")
	default:
		return fmt.Errorf("score the controller: %w\n%s", err, text)
	}
	return nil
}
