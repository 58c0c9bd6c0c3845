package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/flyball-dev/flyball/exercises/internal/tasks"
)

// reset puts the files of a task back as the reader got them. What was there is kept in a file beside each.
func reset(ctx context.Context, dir string, t tasks.Task, out io.Writer) error {
	given := make([][]byte, len(t.Files))
	for i, hash := range t.Given {
		cmd := exec.CommandContext(ctx, "git", "cat-file", "blob", hash)
		cmd.Dir = dir
		var err error
		if given[i], err = cmd.Output(); err != nil {
			return fmt.Errorf("get %s of %s from git, which needs a clone: %w", t.Files[i], t.Name, err)
		}
	}
	for i, name := range t.Files {
		file := filepath.Join(dir, t.Name, name)
		switch was, err := os.ReadFile(file); {
		case errors.Is(err, fs.ErrNotExist):
			fmt.Fprintf(out, "%s/%s was gone, and is there again.\n", t.Name, name)
		case err != nil:
			return err
		case bytes.Equal(was, given[i]):
			fmt.Fprintf(out, "%s/%s is as it was given. Nothing has changed.\n", t.Name, name)
			continue
		default:
			kept, err := keep(file)
			if err != nil {
				return err
			}
			fmt.Fprintf(out, "%s/%s is as it was given. What was there is in %s.\n", t.Name, name, filepath.Base(kept))
		}
		if err := os.WriteFile(file, given[i], 0o644); err != nil {
			return err
		}
	}
	return nil
}

// keep renames a file to the first of its name with .1, .2 and so on that is free, and returns that.
func keep(file string) (string, error) {
	for n := 1; ; n++ {
		kept := fmt.Sprintf("%s.%d", file, n)
		if _, err := os.Lstat(kept); errors.Is(err, fs.ErrNotExist) {
			return kept, os.Rename(file, kept)
		} else if err != nil {
			return "", err
		}
	}
}
