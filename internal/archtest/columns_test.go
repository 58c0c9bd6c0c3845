package archtest

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// mostColumns is the longest line of code and prose. A tab counts as four columns.
const mostColumns = 120

// TestColumns holds for Go files of all modules and for Markdown. Where a line cannot be broken it may be longer: in
// raw strings, in preformatted comments, in the outputs of examples, in tables and code blocks of Markdown, and where
// one word or link is that long; and in markers and generated files of controller-gen.
func TestColumns(t *testing.T) {
	for _, path := range filesOfAllModules(t, ".go") {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		if !hasLongLine(text) || strings.HasPrefix(filepath.Base(path), "zz_generated.") {
			continue
		}
		for _, line := range longInGo(t, path, text) {
			t.Errorf("%s:%d has more than %d columns", path, line, mostColumns)
		}
	}
	for _, path := range files(t, ".md") {
		text, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range longInMarkdown(string(text)) {
			t.Errorf("%s:%d has more than %d columns", path, line, mostColumns)
		}
	}
}

func hasLongLine(text []byte) bool {
	for line := range bytes.Lines(text) {
		if columns(string(line)) > mostColumns {
			return true
		}
	}
	return false
}

func columns(line string) int {
	line = strings.TrimSuffix(line, "\n")
	return len([]rune(line)) + 3*strings.Count(line, "\t")
}

// longInGo returns the numbers of the lines that are too long.
func longInGo(t *testing.T, path string, text []byte) (long []int) {
	t.Helper()
	fset := token.NewFileSet()
	file, err := parser.ParseFile(fset, path, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}
	excepted := map[int]bool{}
	except := func(from, to token.Pos) {
		for n := fset.Position(from).Line; n <= fset.Position(to).Line; n++ {
			excepted[n] = true
		}
	}
	ast.Inspect(file, func(n ast.Node) bool {
		switch x := n.(type) {
		case *ast.BasicLit:
			if strings.HasPrefix(x.Value, "`") {
				except(x.Pos(), x.End())
			}
		case *ast.ImportSpec:
			except(x.Pos(), x.End())
		}
		return true
	})
	for _, group := range file.Comments {
		if body := group.Text(); strings.HasPrefix(body, "Output:") || strings.HasPrefix(body, "Unordered output:") {
			except(group.Pos(), group.End())
		}
	}
	number := 0
	for line := range bytes.Lines(text) {
		number++
		text := strings.TrimLeft(string(line), "\t")
		drawn := strings.HasPrefix(text, "//\t") // preformatted text of a comment
		marker := strings.HasPrefix(text, "// +kubebuilder:")
		if columns(string(line)) > mostColumns && !excepted[number] && !drawn && !marker && !oneWord(string(line)) {
			long = append(long, number)
		}
	}
	return long
}

// oneWord reports whether a line is long because of a single word, such as an address.
func oneWord(line string) bool {
	words := strings.Fields(strings.TrimLeft(line, "\t /-*"))
	return len(words) == 1
}

func longInMarkdown(text string) (long []int) {
	fenced := false
	for i, line := range strings.Split(text, "\n") {
		trimmed := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(trimmed, "```"):
			fenced = !fenced
		case fenced, strings.HasPrefix(trimmed, "|"), strings.HasPrefix(line, "    "), oneWord(line):
		case columns(line) > mostColumns && !isLink(trimmed):
			long = append(long, i+1)
		}
	}
	return long
}

// isLink reports whether a line is one link and punctuation.
func isLink(line string) bool {
	return strings.HasPrefix(line, "[") && strings.Count(line, "](") == 1 &&
		strings.Index(line, " ") > strings.Index(line, "](")
}

// TestLongLines shows that the rule can fail, and where it does not apply.
func TestLongLines(t *testing.T) {
	word := strings.Repeat("word ", 25)
	if got := longInMarkdown("short\n" + word + "\n| " + word + "\n```\n" + word + "\n```\n"); len(got) != 1 ||
		got[0] != 2 {
		t.Errorf("Markdown: lines %v, want [2]", got)
	}
	source := "package p\n\n// " + word + "\nvar s = `" + word + "`\n\nfunc f() {\n\t_ = \"" + word +
		"\"\n\t// Output:\n\t// " + word + "\n}\n"
	if got := longInGo(t, "p.go", []byte(source)); len(got) != 2 || got[0] != 3 || got[1] != 7 {
		t.Errorf("Go: lines %v, want [3 7]", got)
	}
}
