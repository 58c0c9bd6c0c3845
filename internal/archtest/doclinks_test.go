package archtest

import (
	"go/ast"
	godoc "go/doc/comment"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// scope is what the comments of one package can refer to.
type scope struct {
	names   map[string]bool       // see declare
	imports map[string][]string   // name of an imported package → its paths, in all files of the package
	parents map[string][]ast.Expr // name of a type → the types whose members it has, see inherits
}

// scopes holds the scopes of packages by import path. Packages of others are parsed when a comment names them.
type scopes struct {
	known   map[string]*scope
	modules map[string]string // path of a module → its folder; "" stands for the standard library
}

// treeScopes returns the scopes of the root module, once.
func treeScopes(t *testing.T) *scopes {
	t.Helper()
	if parsedScopes == nil {
		parsedScopes = scopesOf(t, sources(t))
	}
	return parsedScopes
}

var parsedScopes *scopes

func scopesOf(t *testing.T, all []source) *scopes {
	t.Helper()
	s := &scopes{known: map[string]*scope{}, modules: map[string]string{}}
	for _, file := range all {
		path := strings.TrimSuffix(module+"/"+file.dir, "/.")
		if s.known[path] == nil {
			s.known[path] = newScope()
		}
		s.known[path].add(file.ast)
	}
	list := exec.Command("go", "list", "-m", "-f", "{{.Path}} {{.Dir}}", "all")
	list.Dir = root
	out, err := list.Output()
	if err != nil {
		t.Fatalf("go list -m all: %v", err)
	}
	for line := range strings.Lines(string(out)) {
		path, dir, _ := strings.Cut(strings.TrimSpace(line), " ")
		s.modules[path] = dir
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		t.Fatalf("go env GOROOT: %v", err)
	}
	s.modules[""] = filepath.Join(strings.TrimSpace(string(goroot)), "src")
	return s
}

func newScope() *scope {
	return &scope{names: map[string]bool{}, imports: map[string][]string{}, parents: map[string][]ast.Expr{}}
}

// add adds the names and imports of a file.
func (s *scope) add(file *ast.File) {
	declare(s.names, file)
	for _, spec := range file.Imports {
		path := strings.Trim(spec.Path.Value, `"`)
		name := packageName(path)
		if spec.Name != nil {
			name = spec.Name.Name
		}
		if !slices.Contains(s.imports[name], path) {
			s.imports[name] = append(s.imports[name], path)
		}
	}
	for _, decl := range file.Decls {
		d, ok := decl.(*ast.GenDecl)
		if !ok || d.Tok != token.TYPE {
			continue
		}
		for _, spec := range d.Specs {
			sp := spec.(*ast.TypeSpec)
			s.parents[sp.Name.Name] = append(s.parents[sp.Name.Name], inherits(sp.Type)...)
		}
	}
}

// inherits returns the types whose members a declaration with this type has: embedded ones, and the type itself.
func inherits(typ ast.Expr) (from []ast.Expr) {
	switch typ.(type) {
	case *ast.StructType, *ast.InterfaceType:
	default:
		return []ast.Expr{typ}
	}
	for _, field := range fields(typ) {
		if len(field.Names) == 0 {
			from = append(from, field.Type)
		}
	}
	return from
}

var majorVersion = regexp.MustCompile(`^v[0-9]+$`)

// packageName guesses the name of a package: the last element of its path that is no version of a module.
func packageName(path string) string {
	parts := strings.Split(path, "/")
	if last := len(parts) - 1; last > 1 && majorVersion.MatchString(parts[last]) &&
		!strings.HasPrefix(path, "k8s.io/") {
		return parts[last-1]
	}
	return parts[len(parts)-1]
}

// scope returns the scope of a package, nil if there is no such package.
func (s *scopes) scope(path string) *scope {
	if known, ok := s.known[path]; ok {
		return known
	}
	s.known[path] = nil
	found := newScope()
	s.eachFile(path, func(file *ast.File) {
		found.add(file)
		s.known[path] = found
	})
	return s.known[path]
}

// eachFile calls see with every file of a package of others, except tests and generated code.
func (s *scopes) eachFile(path string, see func(*ast.File)) {
	dir := ""
	for of := path; dir == "" && of != "."; of = filepath.Dir(of) {
		if s.modules[of] != "" {
			dir = filepath.Join(s.modules[of], strings.TrimPrefix(path, of))
		}
	}
	if dir == "" {
		dir = filepath.Join(s.modules[""], path)
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".go") || strings.HasSuffix(e.Name(), "_test.go") ||
			strings.HasPrefix(e.Name(), "generated.") {
			continue
		}
		name := filepath.Join(dir, e.Name())
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err == nil {
			see(file)
		}
	}
}

// declares reports whether the package has the name, "Type.Member" for a member, which may come from an embedded type.
func (s *scopes) declares(path, name string) bool {
	in := s.scope(path)
	if in == nil || in.names[name] {
		return in != nil
	}
	typ, member, ok := strings.Cut(name, ".")
	if !ok {
		return false
	}
	for _, from := range in.parents[typ] {
		base, paths := baseName(from), []string{path}
		if sel, ok := bare(from).(*ast.SelectorExpr); ok {
			paths = in.imports[baseName(sel.X)]
		} else if base == typ || !in.names[base] {
			continue
		}
		for _, p := range paths {
			if s.declares(p, base+"."+member) {
				return true
			}
		}
	}
	return false
}

// dotted matches what a link can say: a name, or several with dots between them.
var dotted = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)*$`)

// deadLinks returns the links of a comment in the package that lead nowhere.
func (s *scopes) deadLinks(path, text string) (dead []string) {
	in := s.scope(path)
	p := godoc.Parser{
		LookupPackage: func(name string) (string, bool) {
			if paths := in.imports[name]; len(paths) > 0 {
				return paths[0], true
			}
			std, isStd := godoc.DefaultLookupPackage(name)
			word := strings.Contains(text, "["+name+"]") // "verb resource [name]" is no link
			switch {
			case name == packageName(path):
				return path, true
			case isStd && name != "":
				return std, true
			case !word && dotted.MatchString(name) && !s.declares(path, name): // unexported names are fine
				dead = append(dead, name)
			}
			return "", false
		},
		LookupSym: func(recv, name string) bool {
			if name = strings.TrimPrefix(recv+"."+name, "."); name != "" && !s.declares(path, name) {
				dead = append(dead, name)
			}
			return true
		},
	}
	for _, link := range docLinks(p.Parse(text).Content) {
		name := strings.TrimPrefix(link.Recv+"."+link.Name, ".")
		switch {
		case link.ImportPath == "":
		case s.scope(link.ImportPath) == nil:
			dead = append(dead, link.ImportPath)
		case name != "" && !s.declares(link.ImportPath, name):
			dead = append(dead, link.ImportPath+"."+name)
		}
	}
	return dead
}

func docLinks(blocks []godoc.Block) (links []*godoc.DocLink) {
	var texts []godoc.Text
	for _, block := range blocks {
		switch b := block.(type) {
		case *godoc.Paragraph:
			texts = append(texts, b.Text...)
		case *godoc.Heading:
			texts = append(texts, b.Text...)
		case *godoc.List:
			for _, item := range b.Items {
				links = append(links, docLinks(item.Content)...)
			}
		}
	}
	for _, text := range texts {
		if link, ok := text.(*godoc.DocLink); ok {
			links = append(links, link)
		}
	}
	return links
}

// outsideOfBodies returns the comments of a file that stand in no function.
func outsideOfBodies(file *ast.File) (groups []*ast.CommentGroup) {
	for _, group := range file.Comments {
		inside := slices.ContainsFunc(file.Decls, func(d ast.Decl) bool {
			f, ok := d.(*ast.FuncDecl)
			return ok && f.Body != nil && f.Body.Pos() < group.Pos() && group.Pos() < f.Body.End()
		})
		if !inside {
			groups = append(groups, group)
		}
	}
	return groups
}

// TestCommentLinks: a doc link in a comment leads somewhere, be it to a name, to a member of a type, or into a package.
// A package is named as some file of the commenting package imports it, which is how go doc reads it, or by its path.
func TestCommentLinks(t *testing.T) {
	s := treeScopes(t)
	for _, file := range sources(t) {
		for _, group := range outsideOfBodies(file.ast) {
			for _, name := range s.deadLinks(strings.TrimSuffix(module+"/"+file.dir, "/."), group.Text()) {
				t.Errorf("%s:%d: [%s] leads nowhere", file.path, file.fset.Position(group.Pos()).Line, name)
			}
		}
	}
}

// TestDeadLinksAreSeen shows that the check can fail.
func TestDeadLinksAreSeen(t *testing.T) {
	all := []source{
		parsed(t, "informer/indexer", `package indexer
			type Indexer[T any] struct { Size int; hidden bool }
			func New() {}
			func (*Indexer[T]) Replace() {}`),
		parsed(t, "informer", `package informer
			import (
				"sync"
				"k8s.io/apimachinery/pkg/labels"
				"github.com/flyball-dev/flyball/informer/indexer"
			)
			type Store[T any] struct { sync.Mutex; *indexer.Indexer[T] }
			type Alias = indexer.Indexer[int]
			type Reader interface { Get() }
			func keyOf() {}`),
	}
	s := scopesOf(t, all)
	for link, dead := range map[string]bool{
		"Store": false, "Stores": true,
		"Reader.Get": false, "Reader.Put": true,
		"keyOf": false, "Store.Lock": false, "Store.Locks": true, "Store.Replace": false, "Store.Swap": true,
		"Alias.Size": false, "Alias.Length": true,
		"indexer.New": false, "indexer.NewIndexer": true, "*indexer.Indexer": false, "indexer.Indexer.Replace": false,
		"indexer.Indexer.Swap": true, "reflector.New": true, "informer.Store": false, "informer.Gone": true,
		"labels.Everything": false, "labels.Nothing": false, "labels.Some": true, "labels.Selector.Matches": false,
		"labels.Selector.Fits": true, "cache.Store": true,
		"context": false, "context.Context.Done": false, "context.Context.Ready": true, "errors.Is": false,
		"github.com/flyball-dev/flyball/informer/indexer.New":  false,
		"github.com/flyball-dev/flyball/informer/indexer.Make": true,
		"github.com/flyball-dev/flyball/informer/fifo.New":     true,
		"name": false, "0, 1": false, "": false,
	} {
		got := s.deadLinks(module+"/informer", "Store is as ["+link+"] is.\n")
		if len(got) > 0 != dead {
			t.Errorf("[%s]: %q, want dead: %v", link, got, dead)
		}
	}
}
