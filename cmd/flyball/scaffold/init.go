package scaffold

import (
	"context"
	"errors"
	"fmt"
	"go/version"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// InitOptions configures [Init].
type InitOptions struct {
	// Dir is the folder of the project. It is empty, or has only files that a new repository has.
	Dir string
	// Module is the path of the Go module.
	Module string
	// Domain is what the names of the API groups end in. Empty means the first element of Module.
	Domain string
	// ProjectName begins the names of the objects in the cluster. Empty means the last element of Module.
	ProjectName string
	// Flyball is the version of this module that the project requires.
	Flyball string
	// Source is a folder with the source of this module, which the project then uses. Empty means to use the version.
	Source string
	// Multigroup names the folders of all groups after them, also those of the first.
	Multigroup bool
	// FetchDeps runs go mod tidy at the end.
	FetchDeps bool
	// Out receives a report.
	Out io.Writer
}

// Init writes a project without kinds. Errors: invalid names; a folder that is not empty; no Go; files that cannot be
// written. Nothing is written then. If go mod tidy fails, the project is complete but for go.sum.
func Init(ctx context.Context, o InitOptions) error {
	n, domain, err := o.check()
	if err != nil {
		return err
	}
	if err := checkEmpty(o.Dir); err != nil {
		return err
	}
	if err := checkGo(ctx, o.Dir, o.FetchDeps); err != nil {
		return err
	}
	c := &change{dir: o.Dir, fresh: true}
	c.noteSource(o.Source)
	if err := o.fill(c, n); err != nil {
		return err
	}
	p := newProject(n, domain)
	if o.Multigroup {
		p.fields["multigroup"] = true
	}
	return c.finish(ctx, p, o.FetchDeps, o.Out, "Next: flyball create api --group webapp --version v1 --kind Guestbook")
}

// initial are the files of a project without kinds, but for go.mod and PROJECT.
var initial = []string{
	".dockerignore", ".github", ".gitignore", ".golangci.yml", "Dockerfile", "Makefile", "README.md", "cmd",
	"config/default", "config/manager", "config/prometheus", "config/rbac", "test",
}

func (o InitOptions) fill(c *change, n names) error {
	for _, path := range templates(initial...) {
		if strings.Contains(path, "gizmo") || strings.Contains(path, "webhook") {
			continue // of a kind
		}
		text, err := render(path, n)
		if path == rolePath {
			text, err = marshalRole(emptyRole())
		}
		if err != nil {
			return err
		}
		if err := c.create(path, text); err != nil {
			return err
		}
	}
	return c.create("go.mod", []byte(o.goMod(n)))
}

// goMod returns the text of go.mod.
func (o InitOptions) goMod(n names) string {
	text := n.replacer().Replace(template("go.mod.txt"))
	const unreleased = "github.com/flyball-dev/flyball v0.0.0"
	if o.Source == "" {
		return strings.Replace(text, unreleased, "github.com/flyball-dev/flyball "+o.Flyball, 1)
	}
	return text + "\nreplace github.com/flyball-dev/flyball => " + quoted(o.Source) + "\n"
}

// noteSource tells what does not work with a source on this machine.
func (c *change) noteSource(source string) {
	if source != "" {
		c.notes = append(c.notes, "go.mod replaces github.com/flyball-dev/flyball by a folder of this machine: "+
			"make image and .github/workflows/test.yml cannot see it, and need a released version or a copy within "+
			"the project")
	}
}

// quoted returns a path as go.mod has it.
func quoted(path string) string {
	if strings.ContainsAny(path, " \t\"'`(),") {
		return fmt.Sprintf("%q", path)
	}
	return path
}

// Validate checks what the user has named.
func (o InitOptions) Validate() error {
	_, _, err := o.check()
	return err
}

// check checks the options, and returns the names of the project.
func (o *InitOptions) check() (n names, domain string, err error) {
	if err := checkModule(o.Module); err != nil {
		return n, "", err
	}
	n = names{module: o.Module, project: o.ProjectName, kind: "Kind", version: "v1", shortGroup: "group"}
	if n.project == "" {
		n.project = projectName(o.Module)
	}
	if err := checkProject(n.project); err != nil {
		return n, "", err
	}
	domain = o.Domain
	if domain == "" {
		domain, err = domainOf(o.Module)
	} else {
		err = checkDomain(domain)
	}
	if err != nil {
		return n, "", err
	}
	if err := o.checkSource(); err != nil {
		return n, "", err
	}
	return n, domain, nil
}

func (o *InitOptions) checkSource() error {
	if o.Source == "" {
		if !strings.HasPrefix(o.Flyball, "v") || strings.Contains(o.Flyball, "+") {
			return errors.New("this flyball is not a release: name its source by --flyball-source DIR, " +
				"which the project then uses")
		}
		return nil
	}
	dir, err := filepath.Abs(o.Source)
	if err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(dir, "go.mod"))
	if err != nil {
		return fmt.Errorf("--flyball-source: %w", err)
	}
	if !strings.HasPrefix(string(text), "module github.com/flyball-dev/flyball\n") {
		return fmt.Errorf("--flyball-source %s: its go.mod is not that of github.com/flyball-dev/flyball", o.Source)
	}
	o.Source = dir
	return nil
}

// beginnings are files that a new repository may have. They are kept.
var beginnings = []string{".git", ".gitignore", ".gitattributes", ".editorconfig", "LICENSE", "README.md"}

// checkEmpty rejects a folder that has something.
func checkEmpty(dir string) error {
	found, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(found, func(f os.DirEntry) bool { return f.Name() == projectFile }) {
		return fmt.Errorf("%s is a project already: flyball create api adds kinds to it", dir)
	}
	for _, f := range found {
		if !slices.Contains(beginnings, f.Name()) {
			return fmt.Errorf("%s is not empty: it has %s; a project begins in an empty folder", dir, f.Name())
		}
	}
	return nil
}

// oldestGo is the oldest Go that builds a project.
const oldestGo = "go1.26"

// checkGo returns an error unless there is a Go that is new enough, or none is needed.
func checkGo(ctx context.Context, dir string, needed bool) error {
	if !needed {
		return nil
	}
	if _, err := exec.LookPath("go"); err != nil {
		return errors.New("there is no go in the PATH: install Go from https://go.dev/dl, or leave go mod tidy out " +
			"by --fetch-deps=false")
	}
	command := exec.CommandContext(ctx, "go", "env", "GOVERSION")
	command.Dir = dir
	text, err := command.Output()
	if err != nil {
		return fmt.Errorf("go env GOVERSION: %w", err)
	}
	have, _, _ := strings.Cut(strings.TrimSpace(string(text)), " ")
	if version.IsValid(have) && version.Compare(have, oldestGo) < 0 {
		return fmt.Errorf("the go in the PATH is %s, and %s or newer is needed", have, oldestGo)
	}
	return nil
}

// tidy runs go mod tidy.
func tidy(ctx context.Context, dir string) error {
	command := exec.CommandContext(ctx, "go", "mod", "tidy")
	command.Dir = dir
	if text, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("all files are written, but go mod tidy failed, run it again: %w\n%s", err,
			strings.TrimSpace(string(text)))
	}
	return nil
}
