package archtest

import (
	"bytes"
	"go/ast"
	"go/doc"
	"slices"
	"strings"
	"testing"
)

// TestExportedNamesAreDocumented holds for every exported type, function, method, constant and variable
// outside tests and commands.
func TestExportedNamesAreDocumented(t *testing.T) {
	for _, s := range sources(t) {
		if s.test || s.ast.Name.Name == "main" {
			continue
		}
		for _, name := range undocumented(s.ast) {
			t.Errorf("%s: exported %s has no doc comment", s.path, name)
		}
	}
}

func undocumented(file *ast.File) []string {
	var names []string
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && d.Doc == nil && exportedReceiver(d) && !selfEvident(d) {
				names = append(names, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch sp := spec.(type) {
				case *ast.TypeSpec:
					if sp.Name.IsExported() && d.Doc == nil && sp.Doc == nil {
						names = append(names, sp.Name.Name)
					}
				case *ast.ValueSpec:
					for _, n := range sp.Names {
						if n.IsExported() && d.Doc == nil && sp.Doc == nil && sp.Comment == nil {
							names = append(names, n.Name)
						}
					}
				}
			}
		}
	}
	return names
}

// selfEvident are the methods whose name is their contract.
func selfEvident(d *ast.FuncDecl) bool {
	return d.Recv != nil && slices.Contains([]string{"Error", "Unwrap", "String", "Len", "Less", "Swap"}, d.Name.Name)
}

// exportedReceiver is true for functions and for methods of exported types.
func exportedReceiver(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	return ast.IsExported(baseName(d.Recv.List[0].Type))
}

// TestPackageComments: every package has exactly one, in doc.go where there are several files.
func TestPackageComments(t *testing.T) {
	comments := map[string][]string{}
	count := map[string]int{}
	for _, s := range sources(t) {
		if s.test {
			continue
		}
		count[s.dir]++
		if s.ast.Doc != nil {
			comments[s.dir] = append(comments[s.dir], s.path)
		}
	}
	for dir, n := range count {
		got := comments[dir]
		if len(got) != 1 {
			t.Errorf("%s: want one file with a package comment, got %v", dir, got)
		} else if n > 1 && !strings.HasSuffix(got[0], "/doc.go") && !strings.HasSuffix(got[0], "/main.go") {
			t.Errorf("%s: the package comment stands in %s, want doc.go", dir, got[0])
		}
	}
}

// TestConstructorsHaveExamples: every exported New function of a public library package has a runnable
// example, and every example states its output.
func TestConstructorsHaveExamples(t *testing.T) {
	constructors := map[string][]string{} // folder → names
	examples := map[string][]string{}
	for _, s := range sources(t) {
		if s.test {
			for _, ex := range doc.Examples(s.ast) {
				examples[s.dir] = append(examples[s.dir], ex.Name)
				if ex.Output == "" && !ex.EmptyOutput {
					t.Errorf("%s: Example%s has no // Output: comment, so it is never run", s.path, ex.Name)
				}
			}
			continue
		}
		if underAny(s.dir, unpublished...) || strings.Contains("/"+s.dir+"/", "/internal/") {
			continue
		}
		for _, decl := range s.ast.Decls {
			if f, ok := decl.(*ast.FuncDecl); ok && f.Recv == nil &&
				(f.Name.Name == "New" || strings.HasPrefix(f.Name.Name, "New") && f.Name.IsExported()) {
				constructors[s.dir] = append(constructors[s.dir], f.Name.Name)
			}
		}
	}
	for dir, names := range constructors {
		for _, name := range names {
			has := slices.ContainsFunc(examples[dir],
				func(ex string) bool { return ex == name || strings.HasPrefix(ex, name+"_") })
			if !has && !adapterName(dir) {
				t.Errorf("%s: %s has no Example%s", dir, name, name)
			}
		}
	}
}

// adapterName: adapters repeat the constructors of others, whose users know them.
func adapterName(dir string) bool { return underAny(dir, adapters...) }

// TestPackageNames refuses the names that say nothing.
func TestPackageNames(t *testing.T) {
	for _, s := range sources(t) {
		if slices.Contains([]string{"util", "utils", "common", "helpers", "types", "misc"}, s.ast.Name.Name) {
			t.Errorf("%s: package %s: name it for what it does", s.path, s.ast.Name.Name)
		}
	}
}

// TestFileLength: the two packages the project is named for are read file by file.
func TestFileLength(t *testing.T) {
	const most = 400
	for _, s := range sources(t) {
		if n := bytes.Count(s.text, []byte("\n")); n > most && underAny(s.dir, "workqueue", "informer") && !s.test {
			t.Errorf("%s has %d lines, want at most %d", s.path, n, most)
		}
	}
}
