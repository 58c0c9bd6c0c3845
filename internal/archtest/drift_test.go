package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// TestPermittedPackagesExist: the lists of this package name packages that exist. A package that moves
// would otherwise leave a permission behind. A library is permitted only as long as a file imports it.
func TestPermittedPackagesExist(t *testing.T) {
	folders, imported := map[string]bool{}, map[string]bool{}
	for _, s := range sources(t) {
		for dir := s.dir; ; {
			folders[dir] = true
			cut := strings.LastIndex(dir, "/")
			if cut < 0 {
				break
			}
			dir = dir[:cut]
		}
		for _, spec := range s.ast.Imports {
			imported[strings.Trim(spec.Path.Value, `"`)] = true
		}
	}
	ours := slices.Concat(pipeline, adapters, framework, unpublished, learningPath, light)
	ours = append(ours, onDisk, expressions)
	for _, c := range confined {
		ours = append(ours, c.only...)
	}
	for stage, others := range stages {
		ours = append(append(ours, stage), others...)
	}
	for _, name := range absentFolders(folders, ours) {
		t.Errorf("a list of this package names the folder %s, which holds no Go files", name)
	}
	libraries := slices.Clone(kubernetesLibraries)
	for _, a := range allowed {
		libraries = append(libraries, a.path)
	}
	for _, path := range unimported(imported, libraries) {
		t.Errorf("%s is permitted, but no file imports it", path)
	}
	names := declaredNames(sources(t))
	for _, engine := range engines {
		if dir, name, _ := strings.Cut(engine, "."); !names[dir][name] {
			t.Errorf("engines has %s, which no file declares", engine)
		}
	}
}

// absentFolders returns those of names that are not in folders. The pattern "a/..." stands for the folder a.
func absentFolders(folders map[string]bool, names []string) (absent []string) {
	for _, name := range names {
		if name = strings.TrimSuffix(name, "/..."); !folders[name] && !slices.Contains(absent, name) {
			absent = append(absent, name)
		}
	}
	return absent
}

// unimported returns those of paths below which no import path lies.
func unimported(imported map[string]bool, paths []string) (idle []string) {
	for _, path := range paths {
		used := false
		for i := range imported {
			used = used || under(i, path)
		}
		if !used {
			idle = append(idle, path)
		}
	}
	return idle
}

// declaredNames returns, for each folder, the names that its files declare at the top level, and "Type.Member" and
// ".Member" for methods, fields and the methods of interfaces.
func declaredNames(all []source) map[string]map[string]bool {
	names := map[string]map[string]bool{}
	for _, s := range all {
		if names[s.dir] == nil {
			names[s.dir] = map[string]bool{}
		}
		declare(names[s.dir], s.ast)
	}
	return names
}

func declare(names map[string]bool, file *ast.File) {
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Recv == nil {
				names[d.Name.Name] = true
			} else {
				names[baseName(d.Recv.List[0].Type)+"."+d.Name.Name], names["."+d.Name.Name] = true, true
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch sp := spec.(type) {
				case *ast.TypeSpec:
					names[sp.Name.Name] = true
					for _, member := range members(sp.Type) {
						names[sp.Name.Name+"."+member], names["."+member] = true, true
					}
				case *ast.ValueSpec:
					for _, n := range sp.Names {
						names[n.Name] = true
					}
				}
			}
		}
	}
}

// bare returns the type without pointers, parentheses and type arguments.
func bare(typ ast.Expr) ast.Expr {
	switch x := typ.(type) {
	case *ast.StarExpr:
		return bare(x.X)
	case *ast.ParenExpr:
		return bare(x.X)
	case *ast.IndexExpr:
		return bare(x.X)
	case *ast.IndexListExpr:
		return bare(x.X)
	}
	return typ
}

// baseName returns the name of the bare type without its package; "" if it has none.
func baseName(typ ast.Expr) string {
	switch x := bare(typ).(type) {
	case *ast.SelectorExpr:
		return x.Sel.Name
	case *ast.Ident:
		return x.Name
	}
	return ""
}

// fields returns the fields of a struct, or the methods and embedded types of an interface; nil for another type.
func fields(typ ast.Expr) []*ast.Field {
	switch x := typ.(type) {
	case *ast.StructType:
		return x.Fields.List
	case *ast.InterfaceType:
		return x.Methods.List
	}
	return nil
}

// members returns the names of the fields of a struct, or of the methods of an interface, embedded types included.
func members(typ ast.Expr) (names []string) {
	for _, field := range fields(typ) {
		for _, n := range field.Names {
			names = append(names, n.Name)
		}
		if len(field.Names) == 0 {
			names = append(names, baseName(field.Type))
		}
	}
	return names
}

var (
	// prefixed matches the beginning of a text such as "workqueue: NewQueue: the limiter is nil".
	prefixed = regexp.MustCompile(`^([a-z][a-z0-9/]*): ([A-Z][a-z][A-Za-z0-9]*): `)
	// qualified matches a name such as indexer.New or workqueue.Queue.Add.
	qualified = regexp.MustCompile(`\b([a-z][a-z0-9]*)\.([A-Z][A-Za-z0-9]*(?:\.[A-Z][A-Za-z0-9]*)?)\b`)
)

// TestTextsNameWhatExists: a text in the code, mostly of an error or a panic, that names a function or type of ours
// names one that exists.
func TestTextsNameWhatExists(t *testing.T) {
	all := sources(t)
	packages := packagesByName(all)
	for _, s := range all {
		if s.test || under(s.dir, "cmd/flyball/scaffold") { // its texts are programs
			continue
		}
		for _, complaint := range strayTexts(s, packages) {
			t.Errorf("%s: %s", s.path, complaint)
		}
	}
}

// packagesByName returns the names that the packages of a name or path declare, all packages of a name together.
func packagesByName(all []source) map[string]map[string]bool {
	names, packages := declaredNames(all), map[string]map[string]bool{}
	for _, s := range all {
		for _, key := range []string{s.dir, s.ast.Name.Name} {
			if packages[key] == nil {
				packages[key] = map[string]bool{}
			}
			for name := range names[s.dir] {
				packages[key][name] = true
			}
		}
	}
	delete(packages, "main")
	return packages
}

// strayTexts returns a complaint for each text of the file that names what no package of ours declares.
func strayTexts(s source, packages map[string]map[string]bool) (complaints []string) {
	foreign := map[string]bool{} // the names of the packages of others that the file imports
	for _, spec := range s.ast.Imports {
		path := strings.Trim(spec.Path.Value, `"`)
		if name := path[strings.LastIndex(path, "/")+1:]; !under(path, module) {
			foreign[name] = true
		}
	}
	ast.Inspect(s.ast, func(n ast.Node) bool {
		if _, isImport := n.(*ast.ImportSpec); isImport {
			return false
		}
		lit, ok := n.(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			return true
		}
		text, err := strconv.Unquote(lit.Value)
		if err != nil {
			return true
		}
		found := append(prefixed.FindAllStringSubmatch(text, 1), qualified.FindAllStringSubmatch(text, -1)...)
		for _, m := range found {
			if names := packages[m[1]]; names != nil && !names[m[2]] && !names["."+m[2]] && !foreign[m[1]] {
				complaints = append(complaints, lit.Value+" names "+m[2]+", which "+m[1]+" does not declare")
			}
		}
		return true
	})
	return complaints
}

// parsed returns a source of a snippet in the folder dir.
func parsed(t *testing.T, dir, text string) source {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, dir+"/snippet.go", text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	return source{path: dir + "/snippet.go", dir: dir, ast: file, fset: fset, text: []byte(text)}
}

// TestDriftIsSeen shows that the checks of this file can fail.
func TestDriftIsSeen(t *testing.T) {
	indexer := parsed(t, "informer/indexer", "package indexer\nfunc New() {}\n"+
		"type Indexer struct { Size int }\nfunc (*Indexer) Replace() {}")
	for _, c := range []struct {
		text string
		want int
	}{
		{`panic("indexer: New: no name")`, 0},
		{`panic("indexer: NewIndexer: no name")`, 1},
		{`panic("informer/indexer: NewIndexer: no name")`, 1},
		{`panic("indexer: Replace: no objects")`, 0},
		{`panic("indexer: Swap: no objects")`, 1},
		{`fmt.Errorf("indexer.New: %w", err)`, 0},
		{`fmt.Errorf("indexer.Make: %w", err)`, 1},
		{`errors.New("the indexer is nil; indexer.Make makes one")`, 1},
		{`errors.New("indexer.Indexer.Replace failed, Size is indexer.Indexer.Size")`, 0},
		{`errors.New("indexer.Indexer.Swap failed")`, 1},
		{`errors.New("labels.Everything matches all")`, 0},
		{`errors.New("indexer: the size is 0")`, 0},
	} {
		s := parsed(t, "informer", "package informer\nfunc f() { "+c.text+" }")
		if got := strayTexts(s, packagesByName([]source{indexer, s})); len(got) != c.want {
			t.Errorf("%s: %q, want %d complaints", c.text, got, c.want)
		}
	}
	folders := map[string]bool{"informer": true, "informer/indexer": true}
	if got := absentFolders(folders, []string{"informer/...", "informer/metrics", "informer/indexer"}); len(got) != 1 {
		t.Errorf("absentFolders = %q, want informer/metrics alone", got)
	}
	imported := map[string]bool{"k8s.io/api/core/v1": true, "golang.org/x/time/rate": true}
	if got := unimported(imported, []string{"k8s.io/api", "k8s.io/apis", "golang.org/x/time/rate"}); len(got) != 1 {
		t.Errorf("unimported = %q, want k8s.io/apis alone", got)
	}
}
