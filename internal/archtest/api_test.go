package archtest

import (
	"bytes"
	"flag"
	"go/ast"
	"go/printer"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/api, README's table of figures, or the hashes of tasks anew")

// mostTypes is the largest number of public types, those of the adapters included. Lower it when types are hidden or
// deleted. A second name for a public type does not count, and neither does what is in theirs.
const mostTypes = 296

// theirs are the packages and types that are public only because code that was written for controller-runtime uses
// them; see docs/decisions/0025-names-of-controller-runtime.md. They are counted apart.
var (
	theirs     = []string{"manager/ctrl", "reconcile/event"}
	theirTypes = []string{
		"client.FieldIndexer", "client.FieldOwner", "client.MatchingFieldsSelector", "client.MatchingLabelsSelector",
		"client.MergeFromWithOptimisticLock", "client.Writer", "manager.Cache", "manager.RunnableFunc",
	}
)

// unpublished are the folders whose packages are for this repository alone: programs, and what tests share.
var unpublished = []string{"cmd", "examples", "docs", "deploy"}

// TestAPI compares the public surface with docs/api, which has one file for each public package and one line for each
// exported name. A change of the surface is thereby seen in review. "make api" writes the files anew.
func TestAPI(t *testing.T) {
	surface := map[string][]string{} // file name → lines
	types, apart := 0, 0
	for _, s := range sources(t) {
		if s.test || s.ast.Name.Name == "main" || underAny(s.dir, unpublished...) ||
			strings.Contains("/"+s.dir+"/", "/internal/") {
			continue
		}
		lines := exported(t, s)
		for _, line := range lines {
			name, _, _ := strings.Cut(strings.TrimPrefix(line, "type "), " ")
			switch {
			case !strings.HasPrefix(line, "type ") || strings.Contains(line, ", ") || secondName(s, line):
			case underAny(s.dir, theirs...) || slices.Contains(theirTypes, s.ast.Name.Name+"."+name):
				apart++
			default:
				types++
			}
		}
		if len(lines) > 0 {
			name := strings.ReplaceAll(strings.Replace(s.dir, ".", "flyball", 1), "/", ".") + ".txt"
			surface[name] = append(surface[name], lines...)
		}
	}
	if types > mostTypes {
		t.Errorf("%d public types, want at most %d: hide what no user needs", types, mostTypes)
	}
	dir := filepath.Join(root, "docs", "api")
	if *update {
		if err := os.RemoveAll(dir); err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, lines := range surface {
		slices.Sort(lines)
		text := strings.Join(lines, "\n") + "\n"
		path := filepath.Join(dir, name)
		if *update {
			if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		old, err := os.ReadFile(path)
		if err != nil {
			t.Errorf("a new public package: %v: run make api", err)
			continue
		}
		for _, line := range difference(strings.Split(string(old), "\n"), lines) {
			t.Errorf("docs/api/%s: %s: run make api if that is meant", name, line)
		}
	}
	recorded, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range recorded {
		if surface[f.Name()] == nil {
			t.Errorf("docs/api/%s: the package has no exported names any more: run make api if that is meant", f.Name())
		}
	}
	t.Logf("%d public types, and %d for names of controller-runtime, in %d packages", types, apart, len(surface))
}

// secondName reports whether a line declares an alias of a type that a public package of ours declares, or of a pointer
// to one.
func secondName(s source, line string) bool {
	_, of, alias := strings.Cut(line, " = ")
	name, _, qualified := strings.Cut(strings.TrimPrefix(of, "*"), ".")
	if alias && !qualified && token.IsExported(of) {
		return true // of this package
	}
	return qualified && slices.ContainsFunc(s.ast.Imports, func(spec *ast.ImportSpec) bool {
		path := strings.Trim(spec.Path.Value, `"`)
		return spec.Name == nil && strings.HasPrefix(path, module) && strings.HasSuffix(path, "/"+name) &&
			!strings.Contains(path, "/internal/")
	})
}

// TestNoAliasesOfInternalTypes: no public name stands for an internal type, because "go doc" shows neither the fields
// nor the methods of such a type.
func TestNoAliasesOfInternalTypes(t *testing.T) {
	for _, s := range sources(t) {
		if s.test || s.ast.Name.Name == "main" || underAny(s.dir, unpublished...) ||
			strings.Contains("/"+s.dir+"/", "/internal/") {
			continue
		}
		internal := map[string]bool{} // the names of the internal packages that the file imports
		for _, spec := range s.ast.Imports {
			if path := strings.Trim(spec.Path.Value, `"`); strings.HasPrefix(path, module) &&
				strings.Contains(path, "/internal/") {
				internal[path[strings.LastIndex(path, "/")+1:]] = true
			}
		}
		for _, line := range exported(t, s) {
			name, of, alias := strings.Cut(line, " = ")
			if pkg, _, _ := strings.Cut(of, "."); !alias || !internal[pkg] {
				continue
			}
			t.Errorf("%s: %s is an alias of %s: declare the type in a public package", s.path, name, of)
		}
	}
}

// difference returns the lines that only one side has.
func difference(before, now []string) (lines []string) {
	for _, line := range now {
		if !slices.Contains(before, line) {
			lines = append(lines, "not recorded: "+line)
		}
	}
	for _, line := range before {
		if line != "" && !slices.Contains(now, line) {
			lines = append(lines, "recorded but gone: "+line)
		}
	}
	return lines
}

// exported returns a line for each exported name of a file: functions and methods with their signatures, types with
// their kind, a line for each exported field and interface method.
func exported(t *testing.T, s source) (lines []string) {
	t.Helper()
	text := func(node any) string {
		var b bytes.Buffer
		if err := (&printer.Config{}).Fprint(&b, token.NewFileSet(), node); err != nil {
			t.Fatalf("%s: %v", s.path, err)
		}
		return strings.Join(strings.Fields(b.String()), " ")
	}
	for _, decl := range s.ast.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if !d.Name.IsExported() || !exportedReceiver(d) {
				continue
			}
			signature := text(&ast.FuncDecl{Recv: d.Recv, Name: d.Name, Type: d.Type})
			if d.Recv != nil {
				signature = "method" + strings.TrimPrefix(signature, "func")
			}
			lines = append(lines, signature)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch sp := spec.(type) {
				case *ast.TypeSpec:
					if sp.Name.IsExported() {
						lines = append(lines, typeLines(sp, text)...)
					}
				case *ast.ValueSpec:
					for _, n := range sp.Names {
						if n.IsExported() {
							lines = append(lines, d.Tok.String()+" "+n.Name)
						}
					}
				}
			}
		}
	}
	return lines
}

func typeLines(sp *ast.TypeSpec, text func(any) string) (lines []string) {
	name := "type " + sp.Name.Name
	if sp.Assign.IsValid() {
		return []string{name + " = " + text(sp.Type)}
	}
	members := func(list *ast.FieldList) {
		for _, f := range list.List {
			if len(f.Names) == 0 {
				lines = append(lines, name+", embedded "+text(f.Type))
			}
			for _, n := range f.Names {
				if n.IsExported() {
					lines = append(lines, name+", "+n.Name+" "+text(f.Type))
				}
			}
		}
	}
	switch x := sp.Type.(type) {
	case *ast.StructType:
		lines = append(lines, name+" struct")
		members(x.Fields)
	case *ast.InterfaceType:
		lines = append(lines, name+" interface")
		members(x.Methods)
	default:
		lines = append(lines, strings.ReplaceAll(name+" "+text(sp.Type), ", ", ","))
	}
	return lines
}
