package archtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// light are packages that many others import. Nothing that they export may reach one of engines.
var light = []string{"client", "controllers/...", "informer", "manager/...", "multicluster", "reconcile/...", "writes"}

// engines are the generic types that take long to compile.
var engines = []string{
	"informer.SharedInformer", "informer/indexer.Indexer", "informer/reflector.Reflector",
	"informer/internal/fanout.Fanout", "reconcile.engine", "reconcile/internal/feed.Feeds", "workqueue.Queue",
}

// TestEnginesAreOutOfReach: a package that mentions a type compiles, once more, all methods of each instantiated
// generic type that the type reaches through fields and method signatures, and those through theirs. So the types that
// users mention hold the engines behind interfaces and functions; see docs/decisions/0010-light-types.md.
func TestEnginesAreOutOfReach(t *testing.T) {
	for path, pkg := range typed(t, light) {
		seen := map[string]bool{}
		for _, name := range pkg.Scope().Names() {
			if token.IsExported(name) {
				reach(pkg.Scope().Lookup(name).Type(), name, seen, func(n *types.Named, by string) {
					own := strings.TrimPrefix(n.Origin().String(), module+"/")
					if own, _, _ = strings.Cut(own, "["); slices.Contains(engines, own) {
						t.Errorf("%s reaches %s: %s", path, own, by)
					}
				})
			}
		}
	}
}

// reach calls found with each instantiated type that a package compiles when it mentions typ, and the way there.
func reach(typ types.Type, by string, seen map[string]bool, found func(n *types.Named, by string)) {
	all := func(many ...types.Type) {
		for _, one := range many {
			reach(one, by, seen, found)
		}
	}
	switch typ := types.Unalias(typ).(type) {
	case *types.Pointer:
		all(typ.Elem())
	case *types.Slice:
		all(typ.Elem())
	case *types.Array:
		all(typ.Elem())
	case *types.Chan:
		all(typ.Elem())
	case *types.Map:
		all(typ.Key(), typ.Elem())
	case *types.Tuple:
		for v := range typ.Variables() {
			all(v.Type())
		}
	case *types.Signature:
		if typ.TypeParams().Len() == 0 { // A generic function is compiled where it is called.
			all(typ.Params(), typ.Results())
		}
	case *types.Struct:
		for field := range typ.Fields() {
			reach(field.Type(), by+"."+field.Name(), seen, found)
		}
	case *types.Interface:
		for method := range typ.Methods() {
			reach(method.Type(), by+"."+method.Name()+"()", seen, found)
		}
	case *types.Named:
		if seen[typ.String()] || typ.TypeParams().Len() > typ.TypeArgs().Len() {
			return
		}
		seen[typ.String()] = true
		if by += " → " + typ.Obj().Name(); typ.TypeArgs().Len() > 0 {
			found(typ, by)
		}
		for method := range typ.Methods() {
			reach(method.Type(), by+"."+method.Name()+"()", seen, found)
		}
		reach(typ.Underlying(), by, seen, found)
	}
}

// typed type-checks packages of this module from source, with all that they import and without bodies of functions.
func typed(t *testing.T, patterns []string) map[string]*types.Package {
	t.Helper()
	args := []string{"list", "-deps", "-json=ImportPath,Dir,GoFiles,ImportMap,DepOnly"}
	for _, p := range patterns {
		args = append(args, "./"+p)
	}
	list := exec.Command("go", args...)
	list.Dir, list.Env = root, append(list.Environ(), "CGO_ENABLED=0")
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go %s: %v", strings.Join(args, " "), err)
	}
	wanted, done := map[string]*types.Package{}, map[string]*types.Package{"unsafe": types.Unsafe}
	fset := token.NewFileSet()
	for decoder := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p struct {
			ImportPath, Dir string
			GoFiles         []string
			ImportMap       map[string]string
			DepOnly         bool
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return wanted
		} else if err != nil {
			t.Fatal(err)
		}
		if p.ImportPath == "unsafe" {
			continue
		}
		var files []*ast.File
		for _, name := range p.GoFiles {
			file, err := parser.ParseFile(fset, filepath.Join(p.Dir, name), nil, parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, file)
		}
		config := types.Config{
			IgnoreFuncBodies: true,
			Importer:         imports{done, p.ImportMap},
			Error: func(err error) {
				if !p.DepOnly {
					t.Error(err)
				}
			},
		}
		pkg, _ := config.Check(p.ImportPath, fset, files, nil)
		done[p.ImportPath] = pkg
		if !p.DepOnly {
			wanted[p.ImportPath] = pkg
		}
	}
}

// imports finds packages that were type-checked before.
type imports struct {
	done  map[string]*types.Package
	paths map[string]string // what import paths of a package mean, if they differ
}

func (i imports) Import(path string) (*types.Package, error) {
	if other, ok := i.paths[path]; ok {
		path = other
	}
	if pkg := i.done[path]; pkg != nil {
		return pkg, nil
	}
	return nil, fmt.Errorf("%s was not listed", path)
}
