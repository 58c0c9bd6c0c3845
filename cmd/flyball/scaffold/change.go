package scaffold

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// change collects what a command does to a project. Nothing is written before commit, which makes all changes or none.
type change struct {
	dir   string
	force bool
	fresh bool // the command has no flag --force
	moves bool // no file declares more than before
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

// write gives a file another text, or makes it. old is the text that it has; nil if there is no file.
func (c *change) write(path string, old, text []byte) {
	was := "extend"
	if old == nil {
		was = "create"
	}
	if string(old) != string(text) {
		c.put(path, text, was)
	}
}

// merge adds parts of a template to a file of Go, and makes the file if there is none. The user is told what cannot be
// added.
func (c *change) merge(path string, n names, parts ...string) error {
	with, err := render(path, n, parts...)
	if err != nil {
		return err
	}
	to := n.target(path)
	old, exists, err := c.read(to)
	if err != nil {
		return err
	}
	if !exists {
		c.put(to, with, "create")
		return nil
	}
	pkg := packageClause.Find(old)
	if strings.HasSuffix(to, "_test.go") && !bytes.Equal(pkg, packageClause.Find(with)) { // it may import the harness
		c.notes = append(c.notes, fmt.Sprintf("%s is of the %s, and is kept as it is: write the tests of these "+
			"webhooks yourself", to, pkg))
		return nil
	}
	without, err := render(path, n)
	if err != nil {
		return err
	}
	has, err := c.names(to)
	if err != nil {
		return err
	}
	text, left, err := mergeGo(to, old, with, without, has)
	if err != nil {
		return fmt.Errorf("%w: nothing was written; correct the file first", err)
	}
	if left != "" {
		c.notes = append(c.notes, fmt.Sprintf("%s has lost the place for these lines: add them yourself:\n\n%s", to,
			left))
	}
	finished, err := finish(to, text)
	if err != nil {
		return err
	}
	c.write(to, old, finished)
	return nil
}

// names returns a function that reports whether the package of a file declares a name.
func (c *change) names(file string) (has func(string) bool, err error) {
	all, err := c.goFiles(path.Dir(file))
	known, pkg := map[string]bool{}, ""
	for _, f := range all {
		if f.path == file {
			pkg = f.Name.Name
		}
	}
	for _, f := range all {
		for _, d := range f.Decls {
			for _, name := range namesOf(d) {
				known[name] = known[name] || f.Name.Name == pkg
			}
		}
	}
	return func(name string) bool { return known[name] }, err
}

// mergeAll merges several files, and insertAll inserts the lines of a part into several manifests.
func (c *change) mergeAll(n names, paths []string, parts ...string) (err error) {
	for _, path := range paths {
		err = errors.Join(err, c.merge(path, n, parts...))
	}
	return err
}

func (c *change) insertAll(n names, part string, paths ...string) (err error) {
	for _, path := range paths {
		err = errors.Join(err, c.insert(path, fragments(path, part, n)))
	}
	return err
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
	c.write(path, old, []byte(text))
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
func (c *change) finish(ctx context.Context, p *project, fetch bool, out io.Writer, next string) error {
	err := errors.Join(p.save(c), ctx.Err())
	if !c.moves {
		err = errors.Join(err, c.checkNames())
	}
	if err != nil {
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
