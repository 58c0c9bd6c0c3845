package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const module = "github.com/flyball-dev/flyball"

// root is the folder of the module, seen from this one.
const root = "../.."

// source is one parsed Go file.
type source struct {
	path string // from the root, with slashes
	dir  string // its folder, "." for the root
	test bool
	ast  *ast.File
	fset *token.FileSet
	text []byte
}

// parsedSources is what sources returned before. The tests of this package run one after another.
var parsedSources []source

// sources parses every Go file of the root module, once. Callers do not change the result.
func sources(t *testing.T) []source {
	t.Helper()
	if parsedSources != nil {
		return parsedSources
	}
	var all []source
	fset := token.NewFileSet()
	for _, path := range files(t, ".go") {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		file, err := parser.ParseFile(fset, path, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, source{
			path: path, dir: filepath.ToSlash(filepath.Dir(path)),
			test: strings.HasSuffix(path, "_test.go"), ast: file, fset: fset, text: text,
		})
	}
	if len(all) < 10 {
		t.Fatalf("only %d Go files found below %s: the walk is broken", len(all), root)
	}
	parsedSources = all
	return all
}

// files lists the files with the given ending. It leaves out Go files of nested modules.
func files(t *testing.T, ending string) []string {
	t.Helper()
	return walk(t, ending, func(dir string) bool {
		_, err := os.Stat(filepath.Join(dir, "go.mod"))
		return err == nil && ending == ".go"
	})
}

// filesOfAllModules lists the files of every module with the given ending.
func filesOfAllModules(t *testing.T, ending string) []string {
	t.Helper()
	return walk(t, ending, func(string) bool { return false })
}

// walk lists the files with the given ending. It leaves out hidden folders, testdata, bin, and those that skip names.
func walk(t *testing.T, ending string, skip func(dir string) bool) (found []string) {
	t.Helper()
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			if path != root &&
				(strings.HasPrefix(d.Name(), ".") || d.Name() == "testdata" || d.Name() == "bin" || skip(path)) {
				return filepath.SkipDir
			}
		case strings.HasSuffix(path, ending):
			rel, err := filepath.Rel(root, path)
			found = append(found, filepath.ToSlash(rel))
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// under tells whether dir is parent or below it.
func under(dir, parent string) bool { return dir == parent || strings.HasPrefix(dir, parent+"/") }

// underAny tells whether dir is below one of parents.
func underAny(dir string, parents ...string) bool {
	for _, p := range parents {
		if under(dir, p) {
			return true
		}
	}
	return false
}
