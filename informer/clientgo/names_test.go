package clientgo

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

// documented is where the exported names stand that client-go's package has and this one has not: a table row a
// reason, names in backquotes in its second column.
const documented = "../../docs/swap-in.md"

// TestNames: every exported name of client-go's package is either here or in the table of the docs, and not both.
func TestNames(t *testing.T) {
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", "k8s.io/client-go/tools/cache").Output()
	if err != nil {
		t.Fatal(err)
	}
	ours, left := exported(t, "."), absent(t)
	for name := range exported(t, strings.TrimSpace(string(dir))) {
		switch {
		case ours[name] == left[name]:
			t.Errorf("%s: here %v, in the docs' list of absent names %v", name, ours[name], left[name])
		case left[name]:
			delete(left, name)
		}
	}
	for name := range left {
		t.Errorf("client-go has no %s", name)
	}
}

// absent returns the names of the docs' table under "What informer/clientgo does not have".
func absent(t *testing.T) map[string]bool {
	page, err := os.ReadFile(documented)
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(page), "### What `informer/clientgo` does not have")
	if !found {
		t.Fatalf("%s has no list of absent names", documented)
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

// exported has the exported names of the package in dir, tests and methods excluded.
func exported(t *testing.T, dir string) map[string]bool {
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
