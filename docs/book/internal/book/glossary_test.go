package book

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/internal/docblock"
)

// terms are the names in any overview of the parts of a controller. The glossary has each, perhaps in another
// spelling, its chapter explains it, and a drawing of that chapter shows it.
var terms = []struct{ term, row, drawing string }{
	{"Reflector", "reflector", "pipeline-03"},
	{"Delta FIFO", "DeltaFIFO", "pipeline-04"},
	{"Informer", "informer", "06-shared"},
	{"sharedIndexInformer", "sharedIndexInformer", "06-shared"},
	{"Indexer", "indexer", "pipeline-05"},
	{"Lister", "lister", "06-shared"},
	{"WorkQueue", "work queue", "pipeline-07"},
	{"Scheme", "Scheme", "05-scheme"},
	{"processNextWorkItem", "processNextWorkItem", "08-loop"},
	{"syncHandler", "syncHandler", "08-loop"},
	{"EndpointsController", "Endpoints controller", "endpoints-flow"},
	{"DeploymentController", "Deployment controller", "deployment-flow"},
}

var (
	glossary = regexp.MustCompile(`(?m)^\| \**([^*|]+?)\** \| ([^|]+) \| \[?(\d+)\]?(?:\([^)]*\))? \|$`)
	fenced   = regexp.MustCompile("(?ms)^```.*?^```$")
	headline = regexp.MustCompile(`(?m)^##? .*$`)
)

// A passage is the text below a heading, up to the next one.
type passage struct{ heading, text string }

// passages returns the passages of a page, without code.
func passages(t *testing.T, page string) (all []passage) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(Dir(), page+".md"))
	if err != nil {
		t.Fatal(err)
	}
	rest := fenced.ReplaceAllString(string(text), "")
	for {
		at := headline.FindStringIndex(rest)
		if at == nil {
			return all
		}
		p := passage{heading: strings.TrimLeft(rest[at[0]:at[1]], "# ")}
		rest = rest[at[1]:]
		p.text = rest
		if next := headline.FindStringIndex(rest); next != nil {
			p.text = rest[:next[0]]
		}
		all = append(all, p)
	}
}

// explains returns the passage that explains a term: the one that sets it in italics, or else the first that uses it.
// The sections that every chapter has come last.
func explains(term string, all []passage) (passage, bool) {
	var text, others []passage
	for _, p := range all {
		switch p.heading {
		case "What you will build", "Tasks", "What others do", "Check yourself", "Where to read the real code":
			others = append(others, p)
		default:
			text = append(text, p)
		}
	}
	words := strings.Join(strings.Fields(regexp.QuoteMeta(term)), `\s+`) + "(s|es)?"
	for _, try := range []struct {
		pattern string
		in      []passage
	}{{`\*` + words + `\*`, text}, {`\b` + words + `\b`, text}, {`\b` + words + `\b`, others}} {
		uses := regexp.MustCompile("(?i)" + try.pattern)
		at := slices.IndexFunc(try.in, func(p passage) bool { return uses.MatchString(p.text) })
		if at >= 0 {
			return try.in[at], true
		}
	}
	return passage{}, false
}

// TestGlossaryLinks: each row links the passage of its chapter that explains the term.
func TestGlossaryLinks(t *testing.T) {
	file := filepath.Join(Dir(), "glossary.md")
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pages := map[int]Chapter{}
	for _, c := range Chapters {
		pages[c.Number()] = c
	}
	want := glossary.ReplaceAllStringFunc(string(text), func(line string) string {
		m := glossary.FindStringSubmatch(line)
		n, _ := strconv.Atoi(m[3])
		link := pages[n].Page + ".md"
		if p, found := explains(m[1], passages(t, pages[n].Page)); found {
			link += "#" + docblock.Anchor(p.heading)
		}
		before, _, _ := strings.Cut(line, m[2]+" | ")
		return fmt.Sprintf("%s%s | [%d](%s) |", before, m[2], n, link)
	})
	if *update {
		err = os.WriteFile(file, []byte(want), 0o644)
	} else if string(text) != want {
		t.Error("docs/book/glossary.md does not link the passages that explain its terms: run make book-update")
	}
	if err != nil {
		t.Error(err)
	}
}

// TestTerms: each of the terms has a row in the glossary, a passage, and a drawing in the chapter of that passage.
func TestTerms(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(Dir(), "glossary.md"))
	if err != nil {
		t.Fatal(err)
	}
	chapters := map[string]int{}
	for _, m := range glossary.FindAllStringSubmatch(string(text), -1) {
		chapters[m[1]], _ = strconv.Atoi(m[3])
	}
	letters := func(text string) string { return strings.ToLower(strings.ReplaceAll(text, " ", "")) }
	for _, want := range terms {
		n := chapters[want.row]
		if n == 0 {
			t.Errorf("%s: the glossary has no row %s", want.term, want.row)
			continue
		}
		page := Chapters[n-1].Page
		all := passages(t, page)
		if _, found := explains(want.row, all); !found {
			t.Errorf("%s: docs/book/%s.md does not explain it", want.term, page)
		}
		shown := false
		for _, p := range all {
			shown = shown || strings.Contains(p.text, "](images/"+want.drawing+".svg)")
		}
		drawing, err := os.ReadFile(filepath.Join(Dir(), "images", want.drawing+".svg"))
		name := letters(strings.TrimSuffix(want.row, " controller"))
		if err != nil || !shown || !strings.Contains(letters(string(drawing)), name) {
			t.Errorf("%s: docs/book/%s.md does not show images/%s.svg, or that does not have the term (%v)",
				want.term, page, want.drawing, err)
		}
	}
}
