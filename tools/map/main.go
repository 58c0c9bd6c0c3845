// Command map prints how the packages on the path of an object are built, to be read by a person. For each package: the
// types that a user meets, the functions that only forward, and, for the methods that users call most, the longest of
// the shortest ways to a function that changes state. Calls of interfaces, and of functions that are values, end a way;
// what the inspector records is left out.
package main

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"os"
	"slices"
	"strings"

	"golang.org/x/tools/go/packages"
)

const module = "github.com/flyball-dev/flyball/"

// path has the packages in the order in which an object passes them, each with the methods whose ways are shown.
var path = []struct {
	dir     string
	methods []string
}{
	{"informer/listwatch", nil},
	{"informer/reflector", []string{"Reflector.Run"}},
	{"informer/deltafifo", nil},
	{"informer/indexer", []string{"Indexer.Apply"}},
	{"informer", nil},
	{"writes", nil},
	{"workqueue", []string{"Queue.Add", "Queue.AddWith", "Queue.Get", "Queue.Done"}},
	{"reconcile", []string{"engine.Add", "engine.processNextWorkItem"}},
	{"client", []string{"Cluster.Get", "Cluster.List", "Cluster.Update", "Cluster.Patch"}},
}

func main() {
	loaded, err := packages.Load(&packages.Config{
		Mode: packages.NeedName | packages.NeedFiles | packages.NeedSyntax | packages.NeedTypes |
			packages.NeedTypesInfo | packages.NeedImports | packages.NeedExportFile,
	}, "./workqueue/...", "./informer/...", "./writes/...", "./client/...", "./reconcile/...", "./internal/...")
	if err == nil && packages.PrintErrors(loaded) > 0 {
		err = fmt.Errorf("the packages have errors")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "map:", err)
		os.Exit(1)
	}
	g := newGraph(loaded)
	for _, stage := range path {
		i := slices.IndexFunc(loaded, func(p *packages.Package) bool { return p.PkgPath == module+stage.dir })
		if i < 0 {
			fmt.Fprintln(os.Stderr, "map: there is no package", stage.dir)
			os.Exit(1)
		}
		p := loaded[i]
		concepts, forwards := concepts(p), g.forwards(p)
		fmt.Printf("%s\n  %d types: %s\n", stage.dir, len(concepts), strings.Join(concepts, ", "))
		fmt.Printf("  %d functions that only forward: %s\n", len(forwards), strings.Join(forwards, ", "))
		for _, name := range stage.methods {
			way, found := g.longest(p, name)
			if !found {
				fmt.Fprintf(os.Stderr, "map: there is no %s in %s\n", name, stage.dir)
				os.Exit(1)
			}
			fmt.Printf("  %d calls: %s\n", len(way), strings.Join(way, " → "))
		}
	}
}

// concepts returns the names of the exported types that are no aliases.
func concepts(p *packages.Package) (names []string) {
	for _, name := range p.Types.Scope().Names() {
		if t, ok := p.Types.Scope().Lookup(name).(*types.TypeName); ok && t.Exported() && !t.IsAlias() {
			names = append(names, name)
		}
	}
	return names
}

// function is a declared function with what its body does.
type function struct {
	name    string
	calls   []*types.Func
	changes bool // a field or a variable of a package
	forward bool // the body is one call with the function's own parameters
	of      *types.Package
}

type graph map[*types.Func]*function

func newGraph(loaded []*packages.Package) graph {
	g := graph{}
	for _, p := range loaded {
		for _, file := range p.Syntax {
			for _, d := range file.Decls {
				decl, ok := d.(*ast.FuncDecl)
				if !ok || decl.Body == nil {
					continue
				}
				if f, ok := p.TypesInfo.Defs[decl.Name].(*types.Func); ok {
					g[f] = read(p, decl)
				}
			}
		}
	}
	return g
}

func read(p *packages.Package, decl *ast.FuncDecl) *function {
	f := &function{name: decl.Name.Name, of: p.Types}
	if decl.Recv != nil {
		f.name = receiver(decl.Recv.List[0].Type) + "." + f.name
	}
	ast.Inspect(decl.Body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if called := callee(p.TypesInfo, n); called != nil {
				f.calls = append(f.calls, called)
			}
			if id, ok := n.Fun.(*ast.Ident); ok && (id.Name == "delete" || id.Name == "clear") {
				f.changes = f.changes || outlives(p.TypesInfo, n.Args[0])
			}
		case *ast.AssignStmt:
			f.changes = f.changes || n.Tok != token.DEFINE &&
				slices.ContainsFunc(n.Lhs, func(e ast.Expr) bool { return outlives(p.TypesInfo, e) })
		case *ast.IncDecStmt:
			f.changes = f.changes || outlives(p.TypesInfo, n.X)
		}
		return true
	})
	f.forward = len(decl.Body.List) == 1 && forwards(p.TypesInfo, decl.Body.List[0])
	return f
}

// receiver returns the name of the type of a receiver.
func receiver(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.StarExpr:
		return receiver(e.X)
	case *ast.IndexExpr:
		return receiver(e.X)
	case *ast.IndexListExpr:
		return receiver(e.X)
	case *ast.Ident:
		return e.Name
	}
	return "?"
}

// callee returns the declared function that a call calls; nil if only running the program tells.
func callee(info *types.Info, call *ast.CallExpr) *types.Func {
	fun := ast.Unparen(call.Fun)
	switch indexed := fun.(type) {
	case *ast.IndexExpr:
		fun = indexed.X
	case *ast.IndexListExpr:
		fun = indexed.X
	}
	var id *ast.Ident
	switch fun := fun.(type) {
	case *ast.Ident:
		id = fun
	case *ast.SelectorExpr:
		id = fun.Sel
	default:
		return nil
	}
	f, _ := info.Uses[id].(*types.Func)
	if f == nil {
		return nil
	}
	return f.Origin()
}

// outlives reports whether an expression that is assigned to is a field behind a pointer, or a variable of a package.
func outlives(info *types.Info, e ast.Expr) bool {
	for {
		switch x := e.(type) {
		case *ast.ParenExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		case *ast.StarExpr:
			return true
		case *ast.SelectorExpr:
			if t := info.TypeOf(x.X); t != nil {
				if _, ok := t.Underlying().(*types.Pointer); ok {
					return true
				}
			}
			e = x.X
		case *ast.Ident:
			v, ok := info.Uses[x].(*types.Var)
			return ok && v.Pkg() != nil && v.Parent() == v.Pkg().Scope()
		default:
			return false
		}
	}
}

// forwards reports whether a statement is nothing but a call of a function of ours whose arguments are names.
func forwards(info *types.Info, s ast.Stmt) bool {
	var e ast.Expr
	switch s := s.(type) {
	case *ast.ReturnStmt:
		if len(s.Results) != 1 {
			return false
		}
		e = s.Results[0]
	case *ast.ExprStmt:
		e = s.X
	}
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return false
	}
	f := callee(info, call)
	return f != nil && f.Pkg() != nil && strings.HasPrefix(f.Pkg().Path()+"/", module) &&
		!slices.ContainsFunc(call.Args, func(arg ast.Expr) bool { _, name := arg.(*ast.Ident); return !name })
}

// forwards returns the functions of a package that only forward, sorted.
func (g graph) forwards(p *packages.Package) (names []string) {
	for _, f := range g {
		if f.forward && f.of == p.Types {
			names = append(names, f.name)
		}
	}
	slices.Sort(names)
	return names
}

// longest returns the shortest way from a method to the function that is farthest from it, of those that change state.
// A way goes on behind a function that changes state.
func (g graph) longest(p *packages.Package, name string) (way []string, found bool) {
	var start *types.Func
	for f, known := range g {
		if known.name == name && known.of == p.Types {
			start = f
		}
	}
	if start == nil {
		return nil, false
	}
	from := map[*types.Func]*types.Func{start: nil}
	far := start
	for queue := []*types.Func{start}; len(queue) > 0; queue = queue[1:] {
		known := g[queue[0]]
		if known == nil || known.of.Path() == module+"internal/trace" {
			continue // It is not ours, has no body, or only records.
		}
		if known.changes {
			far = queue[0]
		}
		for _, called := range known.calls {
			if _, seen := from[called]; !seen {
				from[called] = queue[0]
				queue = append(queue, called)
			}
		}
	}
	for f := far; f != nil; f = from[f] {
		name := g[f].name
		if g[f].of != p.Types {
			name = strings.TrimPrefix(g[f].of.Path(), module) + "." + name
		}
		way = append(way, name)
	}
	slices.Reverse(way)
	return way, true
}
