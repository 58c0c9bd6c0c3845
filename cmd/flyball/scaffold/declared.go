package scaffold

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// parsed is a file of Go with its text.
type parsed struct {
	*ast.File
	fset *token.FileSet
	text string
}

func parseGo(path, text string) (*parsed, error) {
	fset := token.NewFileSet()
	f, err := parser.ParseFile(fset, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	return &parsed{f, fset, text}, nil
}

// at returns where a position is in the text.
func (p *parsed) at(pos token.Pos) int { return p.fset.Position(pos).Offset }

// namesOf returns the names that a declaration adds to its package. A method is named "Type.Method".
func namesOf(d ast.Decl) (all []string) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		name := d.Name.Name
		if d.Recv != nil && len(d.Recv.List) == 1 {
			name = receiver(d.Recv.List[0].Type) + "." + name
		}
		if name != "init" {
			all = append(all, name)
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			switch s := s.(type) {
			case *ast.TypeSpec:
				all = append(all, s.Name.Name)
			case *ast.ValueSpec:
				for _, name := range s.Names {
					all = append(all, name.Name)
				}
			}
		}
	}
	return slices.DeleteFunc(all, func(name string) bool { return name == "_" })
}

// receiver returns the name of the type of a receiver.
func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return ""
}

// importName returns the name by which a file knows an import, and its path. The last element of a path without a name
// is a guess, which is right for all that the templates import.
func importName(s *ast.ImportSpec) (name, of string) {
	of = strings.Trim(s.Path.Value, `"`)
	if s.Name != nil {
		return s.Name.Name, of
	}
	name = path.Base(of)
	if majorPath.MatchString(name) && strings.Count(of, "/") > 1 && !strings.HasPrefix(of, "k8s.io/api") {
		name = path.Base(path.Dir(of))
	}
	return name, of
}

// checkNames returns an error if a package would have two declarations of one name, or a file two imports, after a
// change. The kinds' names are in the names of functions and types, so the files of two kinds can collide.
func (c *change) checkNames() error {
	checked := map[string]bool{}
	for _, f := range c.files {
		dir := path.Dir(f.path)
		if !strings.HasSuffix(f.path, ".go") || checked[dir] {
			continue
		}
		checked[dir] = true
		if err := c.checkPackage(dir); err != nil {
			return err
		}
	}
	return nil
}

// checkPackage checks one folder. Files that are not Go are left to the compiler.
func (c *change) checkPackage(dir string) error {
	all, err := c.goFiles(dir)
	if err != nil {
		return err
	}
	places := map[string]string{} // of a name in a package, the file
	for _, file := range all {
		if err := checkImports(file); err != nil && c.find(file.path) >= 0 {
			return err
		}
		for _, d := range file.Decls {
			for _, name := range namesOf(d) {
				key := file.Name.Name + " " + name
				other, twice := places[key]
				if twice && (c.find(other) >= 0 || c.find(file.path) >= 0) {
					return fmt.Errorf("%s would be declared in %s and in %s: choose another --kind, or rename yours",
						name, other, file.path)
				}
				places[key] = cmp.Or(other, file.path)
			}
		}
	}
	return nil
}

func checkImports(file goFile) error {
	paths := map[string]string{}
	for _, s := range file.Imports {
		name, of := importName(s)
		if other, twice := paths[name]; twice && other != of && name != "_" && name != "." {
			return fmt.Errorf("%s would import both %s and %s as %s: choose another --group, or rename yours",
				file.path, other, of, name)
		}
		paths[name] = of
	}
	return nil
}

// goFile is a file of a package, as the change has it.
type goFile struct {
	*parsed
	path string
}

// goFiles returns the files of Go in a folder, those that are in order, sorted by path.
func (c *change) goFiles(dir string) (all []goFile, err error) {
	var paths []string
	found, err := os.ReadDir(filepath.Join(c.dir, filepath.FromSlash(dir)))
	if err != nil && !os.IsNotExist(err) {
		return nil, err
	}
	for _, f := range found {
		paths = append(paths, path.Join(dir, f.Name()))
	}
	for _, f := range c.files {
		if path.Dir(f.path) == dir {
			paths = append(paths, f.path)
		}
	}
	slices.Sort(paths)
	for _, p := range slices.Compact(paths) {
		if !strings.HasSuffix(p, ".go") {
			continue
		}
		text, _, err := c.read(p)
		if err != nil {
			return nil, err
		}
		if file, err := parseGo(p, string(text)); err == nil {
			all = append(all, goFile{file, p})
		}
	}
	return all, nil
}
