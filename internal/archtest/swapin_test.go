package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestNamesOfTheAdapters: every exported name of client-go's package is either in the adapter or in the docs' table of
// names that the adapter lacks, and not in both.
func TestNamesOfTheAdapters(t *testing.T) {
	for adapter, peer := range map[string]string{
		"informer/clientgo":  "k8s.io/client-go/tools/cache",
		"workqueue/clientgo": "k8s.io/client-go/util/workqueue",
	} {
		list := exec.Command("go", "list", "-f", "{{.Dir}}", peer)
		list.Dir = root
		dir, err := list.Output()
		if err != nil {
			t.Fatal(err)
		}
		ours, left := packageNames(t, filepath.Join(root, adapter)), absent(t, adapter)
		for name := range packageNames(t, strings.TrimSpace(string(dir))) {
			switch {
			case ours[name] == left[name]:
				t.Errorf("%s: %s: here %v, in the docs' list of absent names %v", adapter, name, ours[name], left[name])
			case left[name]:
				delete(left, name)
			}
		}
		for name := range left {
			t.Errorf("%s: client-go has no %s", adapter, name)
		}
	}
}

// absent returns the names of the table in docs/swap-in.md under "What … does not have": they stand in backquotes.
func absent(t *testing.T, adapter string) map[string]bool {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs", "swap-in.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "### What `"+adapter+"` does not have")
	if !found {
		t.Fatalf("docs/swap-in.md has no list of the names that %s lacks", adapter)
	}
	section, _, _ = strings.Cut(section, "\n#")
	names := map[string]bool{}
	for line := range strings.Lines(section) {
		if !strings.HasPrefix(line, "| ") {
			continue
		}
		for i, part := range strings.Split(line, "`") {
			if i%2 == 1 {
				names[part] = true
			}
		}
	}
	return names
}

// packageNames has the exported names of the package in dir, tests and methods excluded.
func packageNames(t *testing.T, dir string) map[string]bool {
	files, err := filepath.Glob(filepath.Join(dir, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	add := func(id *ast.Ident) {
		if id.IsExported() {
			names[id.Name] = true
		}
	}
	for _, path := range files {
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		for _, decl := range f.Decls {
			switch d := decl.(type) {
			case *ast.FuncDecl:
				if d.Recv == nil {
					add(d.Name)
				}
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					switch s := spec.(type) {
					case *ast.TypeSpec:
						add(s.Name)
					case *ast.ValueSpec:
						for _, id := range s.Names {
							add(id)
						}
					}
				}
			}
		}
	}
	return names
}
