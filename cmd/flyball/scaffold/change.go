package scaffold

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// change collects what a command does to a project. Nothing is written before commit, which makes all changes or none.
type change struct {
	dir   string
	force bool
	fresh bool // the command has no flag --force
	files []file
	notes []string
}

// file is a file that is written.
type file struct {
	path string // below the project, with slashes
	text []byte
	was  string // what is done to it: "create", "extend" or "replace"
}

// read returns the text of a file, as this change has it so far.
func (c *change) read(path string) (text []byte, exists bool, err error) {
	if i := c.find(path); i >= 0 {
		return c.files[i].text, true, nil
	}
	text, err = os.ReadFile(filepath.Join(c.dir, filepath.FromSlash(path)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, false, nil
	}
	return text, err == nil, err
}

func (c *change) find(path string) int {
	return slices.IndexFunc(c.files, func(f file) bool { return f.path == path })
}

func (c *change) put(path string, text []byte, was string) {
	if i := c.find(path); i >= 0 {
		c.files[i].text = text
		return
	}
	c.files = append(c.files, file{path, text, was})
}

// create writes a file that does not exist. A file that exists is kept, and the user is told, unless the change may
// replace files.
func (c *change) create(path string, text []byte) error {
	old, exists, err := c.read(path)
	switch {
	case err != nil:
		return err
	case exists && string(old) == string(text):
	case exists && c.fresh:
		c.notes = append(c.notes, path+" exists and is kept as it is")
	case exists && !c.force:
		c.notes = append(c.notes, path+" exists and is kept as it is; --force replaces it")
	case exists:
		c.put(path, text, "replace")
	default:
		c.put(path, text, "create")
	}
	return nil
}

// extend writes a file that exists already, if it changes.
func (c *change) extend(path string, old, text []byte) {
	if string(old) != string(text) {
		c.put(path, text, "extend")
	}
}

// insert puts fragments of a template into the user's file. Without a marker in the file, or without the file, the user
// is told what to add.
func (c *change) insert(path string, all []fragment) error {
	old, _, err := c.read(path)
	if err != nil {
		return err
	}
	text := string(old)
	for _, f := range all {
		result, missing, ok := f.insert(text)
		if !ok {
			c.notes = append(c.notes,
				fmt.Sprintf("%s has no marker +kubebuilder:scaffold:%s: add these lines yourself:\n\n%s",
					path, f.marker, strings.TrimRight(missing, "\n")))
		}
		text = result
	}
	if text == string(old) {
		return nil
	}
	finished, err := finish(path, text)
	if err != nil {
		return err
	}
	c.extend(path, old, finished)
	return nil
}

// commit makes the changes. All files are written below a temporary folder and then moved to their places. When that
// fails, everything is as it was; if that fails too, the error names the folder that has the files of before.
func (c *change) commit() (err error) {
	if len(c.files) == 0 {
		return nil
	}
	temp, err := os.MkdirTemp(c.dir, ".flyball-")
	if err != nil {
		return err
	}
	keep := false
	defer func() {
		if !keep {
			err = errors.Join(err, os.RemoveAll(temp))
		}
	}()
	for i, f := range c.files {
		if err := os.WriteFile(filepath.Join(temp, fmt.Sprint(i)), f.text, 0o644); err != nil {
			return err
		}
	}
	var undo []func() error
	for i, f := range c.files {
		undone, err := place(filepath.Join(temp, fmt.Sprint(i)), filepath.Join(c.dir, filepath.FromSlash(f.path)))
		undo = append(undo, undone...)
		if err != nil {
			keep, err = revert(temp, err, undo)
			return err
		}
	}
	return nil
}

// revert makes all changes undone. It reports whether that failed, so that the folder with the files of before is kept.
func revert(temp string, cause error, undo []func() error) (failed bool, err error) {
	for _, u := range slices.Backward(undo) {
		err = errors.Join(err, u())
	}
	if err == nil {
		return false, cause
	}
	return true, fmt.Errorf("%w; and not all could be undone: %w; the files of before that are missing are in %s, "+
		"named *.old", cause, err, temp)
}

// place moves a file to its place. A file that is there gives it its mode, and a symbolic link stays. It returns how to
// undo that, last things last, also when it fails half-way.
func place(from, to string) (undo []func() error, err error) {
	var missing []string
	for dir := filepath.Dir(to); ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		missing = append(missing, dir)
	}
	for _, dir := range slices.Backward(missing) {
		if err := os.Mkdir(dir, 0o755); err != nil {
			return undo, err
		}
		undo = append(undo, func() error { return os.Remove(dir) })
	}
	if target, err := filepath.EvalSymlinks(to); err == nil {
		to = target
	}
	if was, err := os.Lstat(to); err == nil {
		if was.Mode().IsRegular() {
			err = os.Chmod(from, was.Mode().Perm())
		}
		if err != nil {
			return undo, err
		}
		backup := from + ".old"
		if err := os.Rename(to, backup); err != nil {
			return undo, err
		}
		undo = append(undo, func() error { return os.Rename(backup, to) })
	}
	if err := os.Rename(from, to); err != nil {
		return undo, err
	}
	return append(undo, func() error { return os.Rename(to, from) }), nil
}

// finish makes the changes, reports them, and runs go mod tidy if that is asked for. The last line of the report is
// what the user does next.
func (c *change) finish(ctx context.Context, fetch bool, out io.Writer, next string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := c.commit(); err != nil {
		return err
	}
	c.report(out)
	if fetch {
		if err := tidy(ctx, c.dir); err != nil {
			return err
		}
	}
	fmt.Fprintf(out, "\n%s\n", next)
	return nil
}

// report lists what was done.
func (c *change) report(out io.Writer) {
	for _, f := range c.files {
		fmt.Fprintf(out, "  %-7s %s\n", f.was, f.path)
	}
	for _, note := range c.notes {
		fmt.Fprintf(out, "\n%s\n", note)
	}
}
