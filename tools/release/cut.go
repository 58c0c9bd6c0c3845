package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

const root = "github.com/flyball-dev/flyball"

// modules are the folders of the modules that programs require. Their paths are root joined with the folder.
var modules = []string{".", "interop/controllerruntime", "interop/multiclusterruntime", "interop/opentelemetry"}

// tags returns the tags of a release: one for each module.
func tags(version string) (all []string) {
	for _, dir := range modules {
		all = append(all, path.Join(dir, version))
	}
	return all
}

// repository is a clone in a folder. Its methods work on files by their paths in it.
type repository struct{ dir string }

func (r repository) git(ctx context.Context, args ...string) (string, error) {
	return run(ctx, r.dir, nil, "git", args...)
}

func (r repository) read(file string) (string, error) {
	text, err := os.ReadFile(filepath.Join(r.dir, file))
	return string(text), err
}

func (r repository) write(file, text string) error {
	return os.WriteFile(filepath.Join(r.dir, file), []byte(text), 0o644)
}

// cut writes a version into the files that name it, commits them, and makes the tags.
//
// It refuses a version that is not one, or exists, and a tree with changes. If it fails later, it puts the files back.
func cut(ctx context.Context, r repository, version string, now time.Time) (err error) {
	if semver.Canonical(version) != version {
		return fmt.Errorf("%q is not a version: it has the form v1.2.3 or v1.2.3-rc.1", version)
	}
	if status, err := r.git(ctx, "status", "--porcelain"); err != nil {
		return err
	} else if status != "" {
		return fmt.Errorf("the tree has changes; commit them first:\n%s", status)
	}
	for _, tag := range tags(version) {
		if found, err := r.git(ctx, "tag", "--list", tag); err != nil {
			return err
		} else if found != "" {
			return fmt.Errorf("the tag %s exists", tag)
		}
	}
	defer func() {
		if err != nil {
			_, undone := r.git(context.WithoutCancel(ctx), "reset", "--hard", "-q")
			err = errors.Join(err, undone)
		}
	}()
	written, err := r.setVersion(ctx, version, now)
	if err != nil {
		return err
	}
	changed, err := r.git(ctx, "diff", "--name-only")
	if err != nil {
		return err
	}
	slices.Sort(written)
	if got := strings.Split(changed, "\n"); !slices.Equal(got, written) {
		return fmt.Errorf("these files changed: %v; a release changes %v", got, written)
	}
	if _, err := r.git(ctx, "commit", "--quiet", "--all", "--message", "release: "+version); err != nil {
		return err
	}
	for _, tag := range tags(version) {
		if _, err := r.git(ctx, "tag", "--annotate", "--message", "Flyball "+version, tag); err != nil {
			return err
		}
		fmt.Println("tagged", tag)
	}
	return nil
}

// setVersion writes the version into files, and returns their names.
func (r repository) setVersion(ctx context.Context, version string, now time.Time) (written []string, err error) {
	for _, dir := range modules[1:] {
		file := path.Join(dir, "go.mod")
		if err := r.requireVersion(file, version); err != nil {
			return nil, err
		}
		written = append(written, file)
	}
	if err := r.heading(version, now); err != nil {
		return nil, err
	}
	images, err := r.imageTags(ctx, version)
	return slices.Concat(written, []string{"CHANGELOG.md"}, images), err
}

// requireVersion makes a module require the version of the others.
func (r repository) requireVersion(file, version string) error {
	text, err := r.read(file)
	if err != nil {
		return err
	}
	mod, err := modfile.Parse(file, []byte(text), nil)
	if err != nil {
		return err
	}
	for _, require := range mod.Require {
		if require.Mod.Path == root || strings.HasPrefix(require.Mod.Path, root+"/") {
			if err := mod.AddRequire(require.Mod.Path, version); err != nil {
				return err
			}
		}
	}
	out, err := mod.Format()
	if err != nil {
		return err
	}
	return r.write(file, string(out))
}

const unreleased = "## Unreleased\n"

// heading gives the changes that have no release yet a heading with the version and the date.
func (r repository) heading(version string, now time.Time) error {
	text, err := r.read("CHANGELOG.md")
	if err != nil {
		return err
	}
	before, after, found := strings.Cut(text, unreleased)
	changes, _, _ := strings.Cut(after, "\n## ")
	if !found || strings.TrimSpace(changes) == "" {
		return errors.New(`CHANGELOG.md has no changes below "## Unreleased"`)
	}
	return r.write("CHANGELOG.md",
		fmt.Sprintf("%s%s\n## %s (%s)\n%s", before, unreleased, version, now.Format(time.DateOnly), after))
}

var imageTag = regexp.MustCompile(`newTag: &version (\S+?)\}`)

// imageTags replaces the tag of the images in every file that names it, and returns the names of the files.
func (r repository) imageTags(ctx context.Context, version string) ([]string, error) {
	const file = "deploy/version/kustomization.yaml"
	text, err := r.read(file)
	if err != nil {
		return nil, err
	}
	match := imageTag.FindStringSubmatch(text)
	if match == nil {
		return nil, fmt.Errorf("%s has no line like %s", file, imageTag)
	}
	found, err := r.git(ctx, "grep", "--files-with-matches", "--fixed-strings", match[1], "--", ":!CHANGELOG.md")
	if err != nil {
		return nil, err
	}
	files := strings.Split(found, "\n")
	for _, file := range files {
		text, err := r.read(file)
		if err != nil {
			return nil, err
		}
		if err := r.write(file, strings.ReplaceAll(text, match[1], version)); err != nil {
			return nil, err
		}
	}
	return files, nil
}
