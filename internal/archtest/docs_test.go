package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	link     = regexp.MustCompile(`\]\(([^)#\s]+)(#[^)]*)?\)`)
	testName = regexp.MustCompile("`((?:Test|Fuzz|Benchmark|Example)[A-Z][A-Za-z0-9_]*)`")
	fence    = regexp.MustCompile("(?ms)^(<!-- snippet: ([^ ]+) -->\n)?```go\n(.*?)^```")
	target   = regexp.MustCompile(`(?m)^([a-z][a-z0-9-]*):.*##`)
	makeCall = regexp.MustCompile("(?m)(?:^|`|\\$ )make ([a-z][a-z0-9-]*)")
)

// TestDocLinks: every relative link of every Markdown file leads somewhere.
func TestDocLinks(t *testing.T) {
	for _, path := range files(t, ".md") {
		for _, m := range link.FindAllStringSubmatch(read(t, path), -1) {
			if strings.Contains(m[1], "://") || strings.HasPrefix(m[1], "mailto:") {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, filepath.Dir(path), m[1])); err != nil {
				t.Errorf("%s: link to %s leads nowhere", path, m[1])
			}
		}
	}
}

// TestDocTestNames: a test that the docs name as evidence exists.
func TestDocTestNames(t *testing.T) {
	var code strings.Builder
	for _, path := range allGoFiles(t) {
		if strings.HasSuffix(path, "_test.go") {
			code.WriteString(read(t, path))
		}
	}
	for _, path := range files(t, ".md") {
		for _, m := range testName.FindAllStringSubmatch(read(t, path), -1) {
			if !strings.Contains(code.String(), "func "+m[1]+"(") {
				t.Errorf("%s names %s, which no test file declares", path, m[1])
			}
		}
	}
}

// TestDocSnippets: Go code in the docs is copied from a file that compiles. A block is preceded by
// <!-- snippet: path/to/file.go --> and stands in that file letter for letter.
func TestDocSnippets(t *testing.T) {
	for _, path := range files(t, ".md") {
		for _, m := range fence.FindAllStringSubmatch(read(t, path), -1) {
			if m[2] == "" {
				t.Errorf("%s: a Go block without a snippet comment before it:\n%s", path, m[3])
			} else if !strings.Contains(read(t, m[2]), m[3]) {
				t.Errorf("%s: this block is not in %s:\n%s", path, m[2], m[3])
			}
		}
	}
}

// TestDocMakeTargets: a make command that the docs show exists, with a line of help: in the Makefile beside the page
// if there is one, else in that of the root. docs/authors.md is about the Makefile of a user's project.
func TestDocMakeTargets(t *testing.T) {
	targets := func(makefile string) map[string]bool {
		known := map[string]bool{}
		for _, m := range target.FindAllStringSubmatch(read(t, makefile), -1) {
			known[m[1]] = true
		}
		return known
	}
	if !targets("Makefile")["test"] {
		t.Fatal("the Makefile's target test was not found: the pattern is broken")
	}
	for _, path := range files(t, ".md") {
		beside := filepath.ToSlash(filepath.Join(filepath.Dir(path), "Makefile"))
		if _, err := os.Stat(filepath.Join(root, beside)); err != nil {
			beside = "Makefile"
		}
		if path == "docs/authors.md" {
			beside = "cmd/flyball/scaffold/project/Makefile"
		}
		known := targets(beside)
		for _, m := range makeCall.FindAllStringSubmatch(read(t, path), -1) {
			if !known[m[1]] {
				t.Errorf("%s shows make %s, which %s does not have", path, m[1], beside)
			}
		}
	}
}

// allGoFiles lists the Go files of every module.
func allGoFiles(t *testing.T) []string {
	t.Helper()
	all := files(t, ".go")
	for _, nested := range files(t, "/go.mod") {
		dir := filepath.Dir(nested)
		if dir == "." {
			continue
		}
		err := filepath.WalkDir(filepath.Join(root, dir), func(path string, d os.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, ".go") {
				rel, _ := filepath.Rel(root, path)
				all = append(all, filepath.ToSlash(rel))
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
