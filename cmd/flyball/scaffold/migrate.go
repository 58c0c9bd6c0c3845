package scaffold

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// MigrateOptions configures [Migrate].
type MigrateOptions struct {
	// Dir is the root of a project of kubebuilder.
	Dir string
	// Flyball and Source are those of InitOptions.
	Flyball, Source string
	// Force moves a project whose work is not committed to git.
	Force bool
	// FetchDeps runs go mod tidy at the end.
	FetchDeps bool
	// Out receives a report.
	Out io.Writer
}

// Migrate moves a project of kubebuilder to this framework: imports, the manager of cmd/main.go, suites of envtest, and
// manifests. What it does not know stays as it is, and is listed. Errors: no project of kubebuilder; work that is not
// committed. Nothing is written then.
func Migrate(ctx context.Context, o MigrateOptions) error {
	source := InitOptions{Flyball: o.Flyball, Source: o.Source}
	if err := source.checkSource(); err != nil {
		return err
	}
	p, err := readProject(o.Dir)
	if err != nil {
		return err
	}
	if !strings.Contains(fmt.Sprint(p.fields["layout"]), "kubebuilder") {
		return errors.New("PROJECT does not have the layout of kubebuilder: there is nothing to migrate")
	}
	if err := checkGo(ctx, o.Dir); err != nil {
		return err
	}
	if !o.Force {
		if err := checkCommitted(ctx, o.Dir); err != nil {
			return err
		}
	}
	c := &change{dir: o.Dir}
	c.noteSource(source.Source)
	if err := rewriteAll(c); err != nil {
		return err
	}
	if err := moveDeployment(c); err != nil {
		return err
	}
	p.fields["layout"] = []any{layout}
	if err := p.save(c); err != nil {
		return err
	}
	requirement := []string{"-require=github.com/flyball-dev/flyball@" + o.Flyball}
	if source.Source != "" {
		requirement = []string{
			"-require=github.com/flyball-dev/flyball@v0.0.0",
			"-replace=github.com/flyball-dev/flyball=" + source.Source,
		}
	}
	if err := c.editGoMod(ctx, append(requirement, "-droprequire=sigs.k8s.io/controller-runtime")); err != nil {
		return err
	}
	return c.finish(ctx, o.FetchDeps, o.Out, "Next: git diff, go vet ./... and make test")
}

// checkCommitted returns an error if git tells of changes below dir that are not committed: the edits could not be told
// from them. A folder outside of a repository is as it is.
func checkCommitted(ctx context.Context, dir string) error {
	command := exec.CommandContext(ctx, "git", "status", "--porcelain", "--", ".")
	command.Dir = dir
	text, err := command.Output()
	if err != nil {
		return ctx.Err() // no git, or no repository
	}
	if first, _, _ := strings.Cut(string(text), "\n"); first != "" {
		return fmt.Errorf("there is work that is not committed (%s): commit it, so that git diff shows what this "+
			"command does, or use --force", strings.TrimSpace(first))
	}
	return nil
}

// rewriteAll rewrites the files of a project.
func rewriteAll(c *change) error {
	return filepath.WalkDir(c.dir, func(full string, d fs.DirEntry, err error) error {
		rel, _ := filepath.Rel(c.dir, full)
		path := filepath.ToSlash(rel)
		switch {
		case err != nil:
			return err
		case d.IsDir() && path != "." && foreign(full):
			return filepath.SkipDir
		case strings.HasSuffix(path, ".go") && d.Type().IsRegular():
			return c.rewrite(path, rewriteGo)
		case path == "Makefile":
			return c.rewrite(path, func(text string) string { return makefileRewrites.apply(text) })
		}
		return nil
	})
}

// foreign reports whether a folder has files that are not of the project's module, as the go command sees it.
func foreign(dir string) bool {
	name := filepath.Base(dir)
	_, err := os.Stat(filepath.Join(dir, "go.mod"))
	return err == nil || name == "bin" || name == "vendor" || name == "testdata" || strings.HasPrefix(name, ".") ||
		strings.HasPrefix(name, "_")
}

// rewrite rewrites one file. A file whose result is not Go stays as it is, and is listed.
func (c *change) rewrite(path string, edit func(string) string) error {
	old, err := os.ReadFile(filepath.Join(c.dir, filepath.FromSlash(path)))
	if err != nil {
		return err
	}
	text := edit(string(old))
	if text != string(old) {
		result, err := finish(path, text)
		if err != nil {
			c.notes = append(c.notes, fmt.Sprintf("%v: the file is left as it was; edit it yourself", err))
			return nil
		}
		c.extend(path, old, result)
		text = string(result)
	}
	if strings.HasSuffix(path, ".go") {
		c.noteRest(path, text)
	}
	return nil
}

// noteRest lists the lines that need what this framework does not have.
func (c *change) noteRest(path, text string) {
	for i, line := range strings.Split(text, "\n") {
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, "//"):
		case strings.Contains(line, `"sigs.k8s.io/controller-runtime`):
			c.notes = append(c.notes, fmt.Sprintf("%s:%d: what takes the place of %s is yours to decide", path, i+1,
				line))
		case strings.Contains(line, "metricsServerOptions"):
			c.notes = append(c.notes, fmt.Sprintf("%s:%d: %s is not what kubebuilder has written, and is left: "+
				"the fields MetricsAddr and Serving of ctrl.Options take the place of metricsServerOptions", path,
				i+1, line))
		}
	}
}

// editGoMod edits a copy of go.mod by go mod edit.
func (c *change) editGoMod(ctx context.Context, flags []string) error {
	old, err := os.ReadFile(filepath.Join(c.dir, "go.mod"))
	if err != nil {
		return err
	}
	temp, err := os.MkdirTemp("", "flyball-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	edited := filepath.Join(temp, "go.mod")
	if err := os.WriteFile(edited, old, 0o644); err != nil {
		return err
	}
	command := exec.CommandContext(ctx, "go", append(append([]string{"mod", "edit"}, flags...), edited)...)
	if text, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("go mod edit: %w\n%s", err, strings.TrimSpace(string(text)))
	}
	text, err := os.ReadFile(edited)
	if err != nil {
		return err
	}
	c.extend("go.mod", old, text)
	return nil
}
