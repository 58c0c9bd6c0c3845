package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// user is somebody who requires a released version in modules of their own.
type user struct {
	dir, clone, version string
	env                 []string
}

// run runs a command line by env, which finds programs in the user's PATH.
func (u user) run(ctx context.Context, dir, line string) (string, error) {
	return run(ctx, dir, u.env, "env", strings.Fields(line)...)
}

// module begins a module in a new folder with files of the clone, requires modules of ours, and tests it.
func (u user) module(ctx context.Context, name, from string, files []string, requires ...string) (string, error) {
	dir := filepath.Join(u.dir, name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(u.clone, from, file))
		if err != nil {
			return "", err
		}
		if err := os.WriteFile(filepath.Join(dir, file), text, 0o644); err != nil {
			return "", err
		}
	}
	lines := []string{"go mod init example.com/" + name}
	for _, require := range requires {
		lines = append(lines, "go get "+require+"@"+u.version)
	}
	for _, line := range append(lines, "go get -t ./...", "go build ./...", "go vet ./...", "go test ./...") {
		if _, err := u.run(ctx, dir, line); err != nil {
			return "", err
		}
	}
	return dir, nil
}

// controller builds and tests README's controller, and prints what it downloads.
func (u user) controller(ctx context.Context) error {
	dir, err := u.module(ctx, "hello", "examples/hello", []string{"main.go", "main_test.go"}, root)
	if err != nil {
		return err
	}
	return u.downloads(ctx, dir)
}

func (u user) swapIn(ctx context.Context) error {
	_, err := u.module(ctx, "swapin", "interop/controllerruntime", []string{"example_test.go"},
		root+"/interop/controllerruntime")
	return err
}

func (u user) exporter(ctx context.Context) error {
	_, err := u.module(ctx, "exporter", "interop/opentelemetry", []string{"example_test.go"},
		root+"/interop/opentelemetry")
	return err
}

// project installs flyball and makes an operator with it, without a clone.
func (u user) project(ctx context.Context) error {
	dir := filepath.Join(u.dir, "guestbook")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	if _, err := u.run(ctx, dir, "go install "+root+"/cmd/flyball@"+u.version); err != nil {
		return err
	}
	said, err := u.run(ctx, dir, "flyball version")
	if err != nil {
		return err
	}
	if !strings.Contains(said, u.version) || !strings.Contains(said, "Kubernetes v1.") {
		return fmt.Errorf("flyball version prints %q, not %s and the version of Kubernetes", said, u.version)
	}
	if err := u.describe(ctx, filepath.Join(dir, "..", "..", "bin")); err != nil {
		return err
	}
	for _, line := range []string{
		"flyball init --module example.com/guestbook",
		"flyball create api --group webapp --version v1 --kind Guestbook",
		"flyball create webhook --group webapp --version v1 --kind Guestbook --defaulting --programmatic-validation",
		"make test",
	} {
		if _, err := u.run(ctx, dir, line); err != nil {
			return err
		}
	}
	return nil
}

// describe checks what describe writes about the installed program: sha256sum accepts the checksums, and the bill of
// materials lists the modules that the go command lists.
func (u user) describe(ctx context.Context, bin string) error {
	if err := describe(bin); err != nil {
		return err
	}
	if _, err := u.run(ctx, bin, "sha256sum --check --strict SHA256SUMS"); err != nil {
		return err
	}
	text, err := os.ReadFile(filepath.Join(bin, "flyball.cdx.json"))
	if err != nil {
		return err
	}
	listed, err := u.run(ctx, bin, "go version -m flyball")
	if err != nil {
		return err
	}
	for line := range strings.Lines(listed) {
		fields := strings.Fields(line)
		if len(fields) < 3 || fields[0] != "dep" && fields[0] != "mod" {
			continue
		}
		if purl := `"purl": "pkg:golang/` + fields[1] + "@" + fields[2] + `"`; !strings.Contains(string(text), purl) {
			return fmt.Errorf("flyball.cdx.json lacks %s", purl)
		}
	}
	return nil
}

// downloads prints how many modules a program downloads, and those that few packages of ours import, with the packages.
func (u user) downloads(ctx context.Context, dir string) error {
	sums, err := os.ReadFile(filepath.Join(dir, "go.sum"))
	if err != nil {
		return err
	}
	downloaded := map[string]bool{}
	for line := range strings.Lines(string(sums)) {
		if fields := strings.Fields(line); len(fields) == 3 && !strings.HasSuffix(fields[1], "/go.mod") {
			downloaded[fields[0]] = true
		}
	}
	list, err := u.run(ctx, dir, "go list -deps -json=ImportPath,Imports,Module ./...")
	if err != nil {
		return err
	}
	moduleOf, imports := map[string]string{}, map[string][]string{}
	for decoder := json.NewDecoder(strings.NewReader(list)); decoder.More(); {
		var pkg struct {
			ImportPath string
			Imports    []string
			Module     struct{ Path string }
		}
		if err := decoder.Decode(&pkg); err != nil {
			return err
		}
		if pkg.Module.Path != "" {
			moduleOf[pkg.ImportPath], imports[pkg.ImportPath] = pkg.Module.Path, pkg.Imports
		}
	}
	by := map[string][]string{} // the packages of ours that import a module
	built := map[string]bool{}
	for pkg, imported := range imports {
		built[moduleOf[pkg]] = true
		for _, i := range imported {
			if m := moduleOf[i]; moduleOf[pkg] == root && m != root && m != "" {
				by[m] = append(by[m], strings.TrimPrefix(pkg, root+"/"))
			}
		}
	}
	delete(built, root)
	fmt.Printf("\nREADME's controller: %d modules in go.sum with their contents, %d of them compiled.\n",
		len(downloaded), len(built)-1)
	fmt.Println("Those that our packages import, and which do:")
	names := slices.SortedFunc(maps.Keys(by), func(a, b string) int {
		return cmp.Or(len(by[a])-len(by[b]), strings.Compare(a, b))
	})
	for _, name := range names {
		slices.Sort(by[name])
		importers := slices.Compact(by[name])
		more := ""
		if most := 3; len(importers) > most {
			more = fmt.Sprintf(" and %d more", len(importers)-most)
			importers = importers[:most]
		}
		fmt.Printf("  %-45s %s%s\n", name, strings.Join(importers, ", "), more)
	}
	fmt.Println()
	return nil
}
