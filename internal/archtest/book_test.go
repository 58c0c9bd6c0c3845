package archtest

import (
	"bytes"
	"crypto/sha1"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const (
	bookDir = "docs/book"
	// leastWords and mostWords bound a chapter: it is one sitting. Paragraphs and lists count, the answers to the
	// questions too; code, tables and comments do not.
	leastWords, mostWords = 1500, 3000
	// mostAverage bounds the average sentence of a page, which is no target: long and short ones belong beside each
	// other. Only paragraphs count. A sentence ends with a full stop, a question mark, an exclamation mark or a
	// paragraph; what stands in backticks is one word.
	mostAverage = 22.0
	// leastTasks are the tasks of the whole book. They count when all chapters are there.
	leastTasks = 24
)

var (
	chapterPage = regexp.MustCompile(`^(\d\d)-[a-z0-9-]+$`)
	fenced      = regexp.MustCompile("(?ms)^```.*?^```\n?")
	comment     = regexp.MustCompile(`(?s)<!--.*?-->`)
	htmlTag     = regexp.MustCompile(`</?[a-z]+[^>]*>`)
	image       = regexp.MustCompile(`!\[([^\]]*)\]\(([^)]*)\)`)
	mdLink      = regexp.MustCompile(`\[([^\]]*)\]\(([^)]*)\)`)
	inlineCode  = regexp.MustCompile("`[^`]*`")
	madeBy      = regexp.MustCompile(`<!-- made by (Test\w+(?:/[^ ]+)?) -->`)
	heading     = regexp.MustCompile(`(?m)^## (.*)$`)
	sentenceEnd = regexp.MustCompile(`[.?!]["”)*]*(\s|$)`)
	glossaryRow = regexp.MustCompile(`(?m)^\| (\*\*)?([^*|]+?)(?:\*\*)? \| [^|]+\. \| \[(\d+)\]\([^)]+\) \|$`)
	otherSystem = regexp.MustCompile(`client-go|controller-runtime|kube-controller-manager`)
	issueLink   = regexp.MustCompile(`#\d+\]\(https://github\.com/[^)]+/(issues|pull)/\d+\)`)
	pinned      = regexp.MustCompile("v\\d+\\.\\d+\\.\\d+[\\s\\S]*`[\\w./-]+`|`[\\w./-]+`[\\s\\S]*v\\d+\\.\\d+\\.\\d+")
	exercise    = regexp.MustCompile(`exercises/(\d\d[a-z]-[a-z0-9-]+)/`)
	taskMinutes = regexp.MustCompile(`exercises/(\d\d[a-z]-[a-z0-9-]+)/[^)]*\)\s+\((\d+)\s+minutes\)`)
	sumMinutes  = regexp.MustCompile(`about\s+(\d+)\s+minutes`)
)

// sections are those that each chapter has, in this order. Others may stand between the first and the second.
var sections = []string{
	"What you will build", "Tasks", "What others do", "Check yourself", "Where to read the real code",
}

// bookPage is a page of the book.
type bookPage struct {
	name, text string
	number     int // of the chapter; 0 for others
	paragraphs []string
	lists      []string
}

// bookPages reads the pages that exist.
func bookPages(t *testing.T) (pages []bookPage) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root, bookDir, "*.md"))
	if err != nil || len(names) == 0 {
		t.Fatalf("there is no book: %v", err)
	}
	for _, file := range names {
		p := bookPage{name: strings.TrimSuffix(filepath.Base(file), ".md")}
		p.text = read(t, bookDir+"/"+p.name+".md")
		if m := chapterPage.FindStringSubmatch(p.name); m != nil {
			p.number, _ = strconv.Atoi(m[1])
		}
		p.paragraphs, p.lists = prose(p.text)
		pages = append(pages, p)
	}
	return pages
}

// prose returns the paragraphs and the list items of a page. Headings, code, tables, images and comments are left out.
func prose(text string) (paragraphs, lists []string) {
	for _, re := range []*regexp.Regexp{fenced, comment, image} {
		text = re.ReplaceAllString(text, "\n\n")
	}
	text = strings.ReplaceAll(text, "</summary>", "\n\n")
	text = htmlTag.ReplaceAllString(text, "")
	for block := range strings.SplitSeq(text, "\n\n") {
		block = strings.TrimSpace(block)
		switch {
		case block == "" || strings.HasPrefix(block, "#") || strings.HasPrefix(block, "|"):
		case regexp.MustCompile(`^(- |\d+\. )`).MatchString(block):
			for _, item := range regexp.MustCompile(`(?m)^(?:- |\d+\. )`).Split(block, -1) {
				if item != "" {
					lists = append(lists, strings.TrimSpace(item))
				}
			}
		default:
			paragraphs = append(paragraphs, block)
		}
	}
	return paragraphs, lists
}

// words counts the words of a text. What stands in backticks is one word, and the address of a link is none.
func words(text string) int {
	text = inlineCode.ReplaceAllString(mdLink.ReplaceAllString(text, "$1"), "code")
	return len(strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" \n\t—", r) }))
}

// sentences counts the sentences of a paragraph.
func sentences(paragraph string) int {
	text := inlineCode.ReplaceAllString(mdLink.ReplaceAllString(paragraph, "$1"), "code")
	n := len(sentenceEnd.FindAllString(text, -1))
	if !sentenceEnd.MatchString(text[max(0, len(text)-3):]) {
		n++
	}
	return n
}

// TestDocBookForm: each chapter has its drawing, its sections and questions, and is one sitting.
func TestDocBookForm(t *testing.T) {
	for _, p := range bookPages(t) {
		all, inParagraphs, count := 0, 0, 0
		for _, text := range p.paragraphs {
			inParagraphs += words(text)
			count += sentences(text)
		}
		all = inParagraphs
		for _, text := range p.lists {
			all += words(text)
		}
		average := float64(inParagraphs) / float64(max(count, 1))
		if average >= mostAverage {
			t.Errorf("%s: %.1f words a sentence, want less than %v", p.name, average, mostAverage)
		}
		if p.number == 0 {
			continue
		}
		t.Logf("%s: %d words, %.1f a sentence", p.name, all, average)
		if all < leastWords || all > mostWords {
			t.Errorf("%s has %d words, want %d to %d", p.name, all, leastWords, mostWords)
		}
		if !strings.Contains(p.text, "](images/pipeline-"+p.name[:2]+".svg)") {
			t.Errorf("%s does not show images/pipeline-%s.svg", p.name, p.name[:2])
		}
		var found []string
		for _, m := range heading.FindAllStringSubmatch(p.text, -1) {
			if slices.Contains(sections, m[1]) {
				found = append(found, m[1])
			}
		}
		if !slices.Equal(found, sections) {
			t.Errorf("%s has the sections %q, want %q in this order", p.name, found, sections)
		}
		if n := strings.Count(section(p.text, "Check yourself"), "<details>"); n < 3 {
			t.Errorf("%s has %d questions, want three or more", p.name, n)
		}
	}
}

// section returns the text below a heading of the second level.
func section(text, title string) string {
	_, rest, _ := strings.Cut(text, "\n## "+title+"\n")
	body, _, _ := strings.Cut(rest, "\n## ")
	return body
}

// TestDocBookClaims: what a chapter says about another project names a version and a file, or an issue.
func TestDocBookClaims(t *testing.T) {
	for _, p := range bookPages(t) {
		if p.number == 0 {
			continue
		}
		paragraphs, lists := prose(section(p.text, "What others do"))
		claims := 0
		for _, text := range append(paragraphs, lists...) {
			if !otherSystem.MatchString(text) {
				continue
			}
			claims++
			if !issueLink.MatchString(text) && !pinned.MatchString(text) {
				t.Errorf("%s: name a version and a file in backticks, or link an issue as [#1](…): %s", p.name, text)
			}
		}
		if claims == 0 {
			t.Errorf("%s: What others do says nothing about others", p.name)
		}
	}
}

// TestDocBookGlossary: no chapter uses a term before the one that explains it, which sets it in italics where it first
// occurs. A link to that later chapter may use the term. Headings, code and tables are not looked at.
func TestDocBookGlossary(t *testing.T) {
	pages, last, checked := bookPages(t), "", 0
	for _, m := range glossaryRow.FindAllStringSubmatch(read(t, bookDir+"/glossary.md"), -1) {
		term := m[2]
		if strings.ReplaceAll(strings.ToLower(term), "-", " ") < last {
			t.Errorf("glossary: %q is not in alphabetical order", term)
		}
		last = strings.ReplaceAll(strings.ToLower(term), "-", " ")
		if m[1] == "" {
			continue
		}
		checked++
		explained, _ := strconv.Atoi(m[3])
		spaced := strings.ReplaceAll(regexp.QuoteMeta(term), " ", `\s+`)
		uses := regexp.MustCompile(`(?i)(\*?)\b` + spaced + `(?:s|es)?\b`)
		for _, p := range pages {
			if p.number == 0 || p.number > explained {
				continue
			}
			first := uses.FindStringSubmatch(termText(p, explained))
			switch {
			case p.number < explained && first != nil:
				t.Errorf("%s uses %q, which chapter %d explains: say it otherwise, or link that chapter", p.name, term,
					explained)
			case p.number == explained && (first == nil || first[1] != "*"):
				t.Errorf("%s explains %q: set it in *italics* where it first occurs", p.name, term)
			}
		}
	}
	if rows := strings.Count(read(t, bookDir+"/glossary.md"), "\n| ") - 1; rows !=
		len(glossaryRow.FindAllString(read(t, bookDir+"/glossary.md"), -1)) {
		t.Errorf("glossary: a row is not | term | Meaning. | [chapter](page.md#section) |")
	}
	t.Logf("%d terms are checked", checked)
}

// termText is the text in which a term may not stand before its chapter: without code, and without the words of links
// to that chapter.
func termText(p bookPage, explained int) string {
	paragraphs, lists := prose(p.text)
	if p.number == explained {
		paragraphs, lists = proseInOrder(p.text), nil
	}
	text := inlineCode.ReplaceAllString(strings.Join(append(paragraphs, lists...), "\n"), "")
	return mdLink.ReplaceAllStringFunc(text, func(link string) string {
		m := mdLink.FindStringSubmatch(link)
		if strings.HasPrefix(filepath.Base(m[2]), strconv.Itoa(explained)+"-") ||
			strings.HasPrefix(filepath.Base(m[2]), "0"+strconv.Itoa(explained)+"-") {
			return ""
		}
		return m[1]
	})
}

// proseInOrder is prose with paragraphs and lists as they stand.
func proseInOrder(text string) []string {
	paragraphs, _ := prose(regexp.MustCompile(`(?m)^(- |\d+\. )`).ReplaceAllString(text, "· "))
	return paragraphs
}

// TestDocBookRuns: each trace and table names a test of docs/book that writes it, each figure is shown and comes
// from a test, and each task is named in its chapter. It prints the counts.
func TestDocBookRuns(t *testing.T) {
	var code strings.Builder
	for _, path := range files(t, ".go") {
		if under(filepath.ToSlash(filepath.Dir(path)), bookDir) {
			code.WriteString(read(t, path))
		}
	}
	shown, tasks := map[string]bool{}, map[string]bool{}
	excerpts, made, chapters := 0, 0, 0
	for _, p := range bookPages(t) {
		excerpts += len(fence.FindAllString(p.text, -1))
		for _, m := range madeBy.FindAllStringSubmatch(fenced.ReplaceAllString(p.text, ""), -1) {
			made++
			name, _, _ := strings.Cut(m[1], "/")
			if !strings.Contains(code.String(), "func "+name+"(") {
				t.Errorf("%s: no test %s in docs/book makes this block", p.name, name)
			}
		}
		for _, m := range image.FindAllStringSubmatch(p.text, -1) {
			shown[filepath.Base(m[2])] = true
			if len(m[1]) < 20 {
				t.Errorf("%s: say what %s shows, for readers who do not see it: %q", p.name, m[2], m[1])
			}
		}
		if p.number == 0 {
			continue
		}
		chapters++
		for _, m := range exercise.FindAllStringSubmatch(section(p.text, "Tasks"), -1) {
			tasks[m[1]] = true
			if !strings.HasPrefix(m[1], p.name[:2]) {
				t.Errorf("%s names the task %s of another chapter", p.name, m[1])
			}
		}
	}
	figures := checkFigures(t, shown, code.String())
	folders := checkTasks(t, tasks)
	if chapters == 12 && folders < leastTasks {
		t.Errorf("%d tasks, want %d", folders, leastTasks)
	}
	t.Logf("%d chapters: %d excerpts, %d traces and tables, %d figures, %d tasks", chapters, excerpts, made, figures,
		folders)
}

// checkFigures: each figure is shown by a page and named by a test, if its chapter is written.
func checkFigures(t *testing.T, shown map[string]bool, code string) int {
	t.Helper()
	images, err := os.ReadDir(filepath.Join(root, bookDir, "images"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range images {
		name := strings.TrimSuffix(f.Name(), ".svg")
		pipeline := strings.HasPrefix(name, "pipeline")
		if !shown[f.Name()] && !pipeline {
			t.Errorf("%s/images/%s is shown by no page", bookDir, f.Name())
		}
		if !pipeline && !strings.Contains(code, `"`+name+`"`) {
			t.Errorf("%s/images/%s: no test in docs/book makes it", bookDir, f.Name())
		}
	}
	return len(images)
}

// checkTasks: each task is named in the section Tasks of its chapter, if that is written.
func checkTasks(t *testing.T, named map[string]bool) (folders int) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(root, "exercises"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !exercise.MatchString("exercises/" + e.Name() + "/") {
			continue
		}
		folders++
		page, _ := filepath.Glob(filepath.Join(root, bookDir, e.Name()[:2]+"-*.md"))
		if len(page) > 0 && !named[e.Name()] {
			t.Errorf("exercises/%s is not named in the section Tasks of its chapter", e.Name())
		}
	}
	return folders
}

// TestDocBookMinutes: the minutes that a chapter gives for its tasks, and their sum, are those of the tasks.
func TestDocBookMinutes(t *testing.T) {
	for _, p := range bookPages(t) {
		text, sum := section(p.text, "Tasks"), 0
		found := taskMinutes.FindAllStringSubmatch(text, -1)
		for _, m := range found {
			var task struct{ Minutes int }
			if err := json.Unmarshal([]byte(read(t, "exercises/"+m[1]+"/task.json")), &task); err != nil {
				t.Fatal(err)
			}
			if m[2] != strconv.Itoa(task.Minutes) {
				t.Errorf("%s gives %s minutes for %s, task.json %d", p.name, m[2], m[1], task.Minutes)
			}
			sum += task.Minutes
		}
		total := sumMinutes.FindStringSubmatch(text)
		if len(found) > 0 && (total == nil || total[1] != strconv.Itoa(sum)) {
			t.Errorf("%s: its tasks take \"about %d minutes\", which it does not say", p.name, sum)
		}
	}
}

var given = regexp.MustCompile(`(?m)^  "given": .*$`)

// TestDocBookGiven: task.json has the hashes by which make learn finds the files in git as the reader got them.
func TestDocBookGiven(t *testing.T) {
	all, err := filepath.Glob(filepath.Join(root, "exercises/[0-9][0-9][a-z]-*/task.json"))
	if err != nil || len(all) == 0 {
		t.Fatalf("there are no tasks: %v", err)
	}
	for _, file := range all {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var task struct{ Files []string }
		if err := json.Unmarshal(text, &task); err != nil {
			t.Fatal(err)
		}
		var hashes []string
		for _, name := range task.Files {
			code, err := os.ReadFile(filepath.Join(filepath.Dir(file), name))
			if err != nil {
				t.Fatal(err)
			}
			blob := append(fmt.Appendf(nil, "blob %d\x00", len(code)), code...)
			hashes = append(hashes, fmt.Sprintf(`"%x"`, sha1.Sum(blob)))
		}
		want := given.ReplaceAll(text, []byte(`  "given": [`+strings.Join(hashes, ", ")+`],`))
		switch {
		case bytes.Equal(text, want):
		case !*update:
			t.Errorf("%s: its files have changed; renew their hashes with\n"+
				"go test ./internal/archtest -run 'TestDocBookGiven$' -count 1 -update", file)
		default:
			if err := os.WriteFile(file, want, 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// TestProseCounts shows what is counted.
func TestProseCounts(t *testing.T) {
	text := "# Title\n\nOne two `three four`. See [five six](x.md)!\n\n```go\ncode.\n```\n\n| a | b |\n\n" +
		"- An item.\n- Two.\n"
	paragraphs, lists := prose(text)
	if len(paragraphs) != 1 || len(lists) != 2 {
		t.Fatalf("paragraphs %q, lists %q", paragraphs, lists)
	}
	if w, s := words(paragraphs[0]), sentences(paragraphs[0]); w != 6 || s != 2 {
		t.Errorf("%d words and %d sentences, want 6 and 2", w, s)
	}
	if !pinned.MatchString("client-go v0.37.2 has it in `cache/store.go`.") || pinned.MatchString("client-go `Add`") {
		t.Error("a claim with version and file is not told from one without")
	}
}
