package book

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/docs/book/internal/figure"
	"github.com/flyball-dev/flyball/internal/docblock"
)

var update = flag.Bool("update", false, "write the blocks and figures of the book anew, instead of comparing them")

// Trace compares what a program printed with the block that the page has for this test, as preformatted text. Page is
// the name of a chapter's file, without its ending.
func Trace(t testing.TB, page, text string) {
	t.Helper()
	Block(t, page, "```text\n"+strings.TrimRight(text, "\n")+"\n```")
}

// Block is [Trace] for Markdown: a table, for example. The block stands between <!-- made by NAME --> and
// <!-- end of NAME -->, where NAME is the name of the test.
func Block(t testing.TB, page, markdown string) {
	t.Helper()
	file := filepath.Join(Dir(), page+".md")
	if *update {
		if err := docblock.Write(file, t.Name(), markdown); err != nil {
			t.Error(err)
			return
		}
	}
	got, err := docblock.Read(file, t.Name())
	if err != nil {
		t.Error(err)
	} else if want := strings.TrimSpace(markdown); got != want {
		t.Errorf("docs/book/%s.md does not show what the program does now: run make book-update and read the text "+
			"around it. It shows:\n%s\nThe program does:\n%s", page, got, want)
	}
}

// Figure compares a drawing with docs/book/images/NAME.svg.
func Figure(t testing.TB, name string, f *figure.Figure) {
	t.Helper()
	file, want := filepath.Join(Dir(), "images", name+".svg"), f.SVG()
	if *update {
		if err := os.WriteFile(file, []byte(want), 0o644); err != nil {
			t.Error(err)
			return
		}
	}
	if got, err := os.ReadFile(file); err != nil {
		t.Errorf("%v: run make book-update", err)
	} else if string(got) != want {
		t.Errorf("docs/book/images/%s.svg does not show what the program does now: run make book-update, look at the "+
			"figure and read the text around it", name)
	}
}

// Dir returns the folder of the book: the nearest one above the test that has WRITING.md.
func Dir() string {
	dir, err := os.Getwd()
	for err == nil {
		if _, missing := os.Stat(filepath.Join(dir, "WRITING.md")); missing == nil || dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	return dir
}
