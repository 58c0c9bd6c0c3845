package archtest

import (
	"go/ast"
	"go/token"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// camelCase matches a word that looks like a name in Go: it has a capital after a small letter or a digit.
	camelCase = regexp.MustCompile(`[A-Za-z_]\w*[a-z0-9][A-Z]\w*`)
	word      = regexp.MustCompile(`[A-Za-z_]\w*`)
	// codeLine matches a line of a code block, whose variables need not exist.
	codeLine = regexp.MustCompile(`(?m)^\t.*$`)
	// quotation matches what a comment quotes: code of others, texts, addresses, paths, markers, and sources.
	quotation = regexp.MustCompile("(?s)`[^`]*`|\"[^\"\n]*\"|https?://\\S+|[\\w.-]+/[\\w./-]+|(?m:^\\s*\\+.*$)|" +
		"\\bSource: .*?(?:\n\n|$)")
)

// notOurs are names that comments use although no code near them does, and whose they are.
var notOurs = map[string]string{
	"KiB":                                  "a unit",
	"MiB":                                  "a unit",
	"NaN":                                  "IEEE 754",
	"JavaScript":                           "a language",
	"OpenShift":                            "a product",
	"AfterSuite":                           "Ginkgo",
	"BeforeSuite":                          "Ginkgo",
	"chapterNN":                            "chapter01, chapter02 and so on",
	"ControlPlane":                         "controller-runtime's envtest",
	"KubeCtl":                              "controller-runtime's envtest",
	"OwnerReferencesPermissionEnforcement": "an admission plugin of kube-apiserver",
	"RealFIFO":                             "client-go's tools/cache",
	"controller.Options.NewQueue":          "controller-runtime",
	"cache.Options.NewInformer":            "controller-runtime",
	"events.AnnotatedEventRecorder":        "client-go's tools/events",
}

// kubernetesAPI are the packages whose types, fields and values comments may name without importing them.
var kubernetesAPI = []string{
	"k8s.io/api/admissionregistration/v1", "k8s.io/api/apidiscovery/v2", "k8s.io/api/apps/v1", "k8s.io/api/core/v1",
	"k8s.io/api/batch/v1", "k8s.io/api/discovery/v1", "k8s.io/api/events/v1", "k8s.io/api/rbac/v1",
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1", "k8s.io/apimachinery/pkg/apis/meta/v1",
	"k8s.io/apimachinery/pkg/runtime",
}

// vocabulary is what the comments of the root module may name.
type vocabulary struct {
	folders    map[string]map[string]bool // folder → the names, and the words of the texts, in its code
	ours       map[string]bool            // the exported names of all our packages
	packages   map[string]map[string]bool // see packagesByName
	kubernetes map[string]bool            // the names, and the words of the texts, of kubernetesAPI
	scopes     *scopes
	needed     map[string]bool // those of notOurs that a comment used
}

func vocabularyOf(t *testing.T, all []source, scopes *scopes) *vocabulary {
	t.Helper()
	v := &vocabulary{
		folders: map[string]map[string]bool{}, ours: map[string]bool{}, packages: packagesByName(all),
		kubernetes: map[string]bool{}, scopes: scopes, needed: map[string]bool{},
	}
	for _, s := range all {
		if v.folders[s.dir] == nil {
			v.folders[s.dir] = map[string]bool{}
		}
		addWords(v.folders[s.dir], s.ast)
	}
	for _, path := range kubernetesAPI {
		v.scopes.eachFile(path, func(file *ast.File) { addWords(v.kubernetes, file) })
	}
	for _, names := range declaredNames(all) {
		for name := range names {
			if name = strings.TrimPrefix(name, "."); ast.IsExported(name) {
				v.ours[name] = true
			}
		}
	}
	return v
}

// addWords adds the names in the code of a file, and the words of its texts: tags of fields, for example.
func addWords(to map[string]bool, file *ast.File) {
	ast.Inspect(file, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.Ident:
			to[x.Name] = true
		case *ast.BasicLit:
			if x.Kind == token.STRING {
				for _, w := range word.FindAllString(x.Value, -1) {
					to[w] = true
				}
			}
		}
		return true
	})
}

// unknown returns the words of a comment in the folder that look like names of ours and are none.
func (v *vocabulary) unknown(dir, text string) (unknown []string) {
	text = quotation.ReplaceAllString(text, " ")
	for _, at := range qualified.FindAllStringSubmatchIndex(text, -1) {
		pkg, name := text[at[2]:at[3]], text[at[4]:at[5]]
		isMember := at[0] > 0 && text[at[0]-1] == '.'
		if names := v.packages[pkg]; names != nil && !isMember && !names[name] && !v.imports(dir, pkg, name) &&
			!v.excepted(pkg+"."+name) {
			unknown = append(unknown, pkg+"."+name)
		}
	}
	text = codeLine.ReplaceAllString(text, "")
	for _, at := range camelCase.FindAllStringIndex(text, -1) {
		name := text[at[0]:at[1]]
		isMember := at[0] > 0 && text[at[0]-1] == '.'
		if !isMember && !v.knows(dir, name) && !v.knows(dir, strings.TrimSuffix(name, "s")) && !v.excepted(name) {
			unknown = append(unknown, name)
		}
	}
	return unknown
}

// knows reports whether a name exists near the folder, or in a package that the folder imports.
func (v *vocabulary) knows(dir, name string) bool {
	return v.folders[dir][name] || v.ours[name] || v.kubernetes[name] || v.imports(dir, "", name)
}

// imports reports whether a package that the folder imports under the name pkg, "" for any, has the name.
func (v *vocabulary) imports(dir, pkg, name string) bool {
	for as, paths := range v.scopes.scope(path.Join(module, dir)).imports {
		for _, p := range paths {
			if pkg != "" && pkg != as {
				continue
			}
			if s := v.scopes.scope(p); s != nil && (s.names[name] || s.names["."+name]) {
				return true
			}
		}
	}
	return false
}

func (v *vocabulary) excepted(name string) bool {
	v.needed[name] = true
	return notOurs[name] != ""
}

// TestNamesInComments: a word of a comment that looks like a name in Go is one: of the package, exported by another of
// ours, of a package that it imports, or of the API of Kubernetes. A name behind one of our packages is in that.
// Quoted names are left out.
func TestNamesInComments(t *testing.T) {
	all := sources(t)
	v := vocabularyOf(t, all, treeScopes(t))
	for _, s := range all {
		for _, group := range s.ast.Comments {
			for _, name := range v.unknown(s.dir, group.Text()) {
				t.Errorf("%s:%d: %s does not exist; if it is another project's, quote it or add it to notOurs",
					s.path, s.fset.Position(group.Pos()).Line, name)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(notOurs)) {
		if !v.needed[name] {
			t.Errorf("notOurs has %s, which no comment needs", name)
		}
	}
}

// TestUnknownNamesAreSeen shows that the check can fail.
func TestUnknownNamesAreSeen(t *testing.T) {
	all := []source{
		parsed(t, "informer/indexer", `package indexer
			type Options struct { PageSize int }
			func New() {}
			func keyFunc(oldKey string) { log("resourceVersion") }`),
		parsed(t, "informer", `package informer
			import "sync"
			import "github.com/flyball-dev/flyball/informer/indexer"
			func NewInformer() {}`),
	}
	v := vocabularyOf(t, all, scopesOf(t, all))
	for text, want := range map[string]string{
		"IndexerOptions configure it.":                                "IndexerOptions",
		"Options configure it; PageSize is one; see keyFunc, oldKey.": "",
		"See keyOf.":                          "keyOf",
		"See NewInformer, or NewReflector.":   "NewReflector",
		"See indexer.New, not indexer.Make.":  "indexer.Make",
		"See NewInformers and StatefulSets.":  "",
		"It has the resourceVersion of it.":   "",
		"It has the resourceVersions of it.":  "",
		"See terminationGracePeriodSeconds.":  "",
		"See `NewReflector` or \"aB\".":       "",
		"See https://example.com/NewThing.":   "",
		"Source: client-go's NewReflector.\n": "",
		"Such as\n\n\tnewThing(indexer.New)":  "",
		"Such as\n\n\tnewThing(indexer.Make)": "indexer.Make",
		"It takes 3 MiB.":                     "",
		"As x.indexer.Place is.":              "",
	} {
		if got := strings.Join(v.unknown("informer/indexer", text), " "); got != want {
			t.Errorf("%q: unknown are %q, want %q", text, got, want)
		}
	}
	got := v.unknown("informer", "See RWMutex and NewCond, not SpinLock.")
	if !slices.Equal(got, []string{"SpinLock"}) {
		t.Errorf("unknown = %q, want SpinLock alone", got)
	}
}

var (
	articles     = map[string]bool{"A": true, "An": true, "The": true}
	testFunction = regexp.MustCompile(`^((Test|Fuzz|Benchmark|Example)[A-Z_]|Example$|init$|main$)`)
)

// misnamed returns a complaint for each declaration or field whose comment begins with the name of something else.
// names are those of the package. A comment may begin with the name of another field of its struct, as that of a mutex
// and what it guards does, and with the name that a field has in JSON.
func misnamed(file *ast.File, names map[string]bool) (wrong []string) {
	check := func(ids []*ast.Ident, docs ...*ast.CommentGroup) {
		for _, doc := range docs {
			first := word.FindString(doc.Text())
			isName := camelCase.MatchString(first) || (names[first] || names["."+first]) && !articles[first]
			if len(ids) == 1 && first != ids[0].Name && isName {
				wrong = append(wrong, "the comment of "+ids[0].Name+" begins with "+first)
			}
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.FuncDecl:
			if !testFunction.MatchString(x.Name.Name) {
				check([]*ast.Ident{x.Name}, x.Doc)
			}
			return false
		case *ast.GenDecl:
			if ts, ok := x.Specs[0].(*ast.TypeSpec); ok && len(x.Specs) == 1 {
				check([]*ast.Ident{ts.Name}, x.Doc)
			}
			if vs, ok := x.Specs[0].(*ast.ValueSpec); ok && len(x.Specs) == 1 {
				check(vs.Names, x.Doc)
			}
		case *ast.TypeSpec:
			check([]*ast.Ident{x.Name}, x.Doc)
		case *ast.ValueSpec:
			check(x.Names, x.Doc)
		case *ast.StructType:
			for _, f := range x.Fields.List {
				first := word.FindString(f.Doc.Text())
				isField := slices.ContainsFunc(members(x), func(m string) bool { return strings.EqualFold(m, first) })
				if !isField && !strings.HasPrefix(f.Doc.Text(), "+") {
					check(f.Names, f.Doc)
				}
			}
		}
		return true
	})
	return wrong
}

// TestCommentsBeginWithTheirName: a comment that begins with a name is that of what it stands before.
func TestCommentsBeginWithTheirName(t *testing.T) {
	all := sources(t)
	names := declaredNames(all)
	for _, s := range all {
		for _, complaint := range misnamed(s.ast, names[s.dir]) {
			t.Errorf("%s: %s", s.path, complaint)
		}
	}
}

// TestMisnamedIsSeen shows that the check can fail.
func TestMisnamedIsSeen(t *testing.T) {
	for text, want := range map[string]int{
		"// Options configure it.\ntype Options struct{}":                       0,
		"// ReflectorOptions configure it.\ntype Options struct{}":              1,
		"// IndexerOptions configure it.\ntype ( Options struct{} )":            1,
		"// New makes one.\nfunc New() {}":                                      0,
		"// Make makes one.\nfunc New() {}; func Make() {}":                     1,
		"// It makes one.\nfunc New() {}":                                       0,
		"// The pod is one.\nvar pod int":                                       0,
		"// podName is one.\nvar pod int":                                       1,
		"// Store is what it is for.\nfunc TestStores() {}; type Store int":     0,
		"type T struct {\n// rest is for.\nlast int; next int }; type rest int": 1,
		"type T struct {\n// next is for.\nlast int; next int }":                0,
		"type T struct {\n// podName is for.\nPodName int }":                    0,
	} {
		s := parsed(t, "informer", "package informer\n"+text)
		if got := misnamed(s.ast, declaredNames([]source{s})["informer"]); len(got) != want {
			t.Errorf("%s: %q, want %d complaints", text, got, want)
		}
	}
}
