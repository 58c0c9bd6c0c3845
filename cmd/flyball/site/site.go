package site

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

const (
	// start has the list of the guides. book has the table of contents of the book, and the site begins with it.
	start = "docs/README.md"
	book  = "docs/book/README.md"
	// glossary has a row for each term of the book. Chapters link a term there where they explain it.
	glossary = "docs/book/glossary.md"
)

// Index is the path of the page that a reader sees first.
const Index = "index.html"

// Try is the path of the playground's page, which is not part of a [Site]: make book builds it.
const Try = "try/index.html"

// forge is where files of the repository are that the file system does not have.
const forge = "https://github.com/flyball-dev/flyball/blob/main/"

// leftOut are the endings of the files that a site leaves out unless a page has a link to them: the programs beside the
// pages of the book.
var leftOut = []string{".go", ".conf"}

// Options configures a site.
type Options struct {
	// Watch is where a form is sent that starts the demo, with the demo's flags as its fields. If it is empty, the
	// pages only name the command, or open the playground.
	Watch string
	// Try means that the playground is there: see [Try].
	Try bool
	// Progress has the state of each task that the reader has tried, by its folder. Links to tasks show the states,
	// unless it is nil.
	Progress map[string]string
}

// Site is a rendered documentation. It does not change.
type Site struct {
	files map[string][]byte // by path, without a slash at the beginning
}

// edition is what the pages share while they are rendered. In the book, terms have the names of the rows of the
// glossary.
type edition struct {
	Options
	docs             fs.FS
	files            map[string][]byte
	pages            map[string]*page
	chapters, guides []string // the pages in the lists beside each page
	terms            map[string]string
}

//go:embed assets
var assets embed.FS

// pageText is a page with gaps, which are named in braces.
//
//go:embed page.html
var pageText string

// New renders README.md and the folder docs of the file system. If that has the source files which the pages show and
// name, the site has them, too.
//
// Errors: a file that cannot be read; a link to a page that is not there, or to a heading that its page does not have.
func New(docs fs.FS, o Options) (*Site, error) {
	e := &edition{Options: o, docs: docs, files: map[string][]byte{}, pages: map[string]*page{}}
	for _, dir := range []string{"README.md", "docs"} {
		err := fs.WalkDir(docs, dir, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			if slices.Contains(leftOut, path.Ext(name)) {
				return nil
			}
			text, err := fs.ReadFile(docs, name)
			if err != nil {
				return err
			}
			if path.Ext(name) == ".md" {
				e.pages[name] = parse(name, text)
				return nil
			}
			e.files[name] = text
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read the documentation: %w", err)
		}
	}
	if e.pages[start] == nil || e.pages[book] == nil {
		return nil, fmt.Errorf("this is no documentation of Flyball: %s and %s are missing", start, book)
	}
	return &Site{e.files}, e.render()
}

// render writes the pages and what they refer to.
func (e *edition) render() error {
	linked := e.pages[book].linked(e.pages)
	e.chapters = append([]string{book}, slices.DeleteFunc(linked, outside("docs/book"))...)
	e.guides = append([]string{start}, slices.DeleteFunc(e.pages[start].linked(e.pages), inside("docs/book"))...)
	if e.pages[glossary] != nil {
		e.terms = e.pages[glossary].terms()
	}
	var errs []error
	var sections []section
	bodies := map[string][]byte{}
	for _, name := range slices.Sorted(maps.Keys(e.pages)) {
		p := e.pages[name]
		body, err := p.html(e)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
			continue
		}
		sections = append(sections, p.sections()...)
		bodies[name] = body
		before, after := "", ""
		if at := slices.Index(e.chapters, name); at >= 0 {
			if at > 0 {
				before = neighbour(name, e.pages[e.chapters[at-1]], "prev", "← %s")
			}
			if at+1 < len(e.chapters) {
				after = neighbour(name, e.pages[e.chapters[at+1]], "next", "%s →")
			}
		}
		e.files[target(name)] = e.page(name, p.title, p.contents(), string(body), before, after)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	var err error
	if e.files[epubName], err = e.epub(bodies); err != nil {
		return err
	}
	e.files[whole] = e.page(whole, "The book on one page", "", e.onePage(bodies), "", "")
	e.files[slides] = e.page(slides, "Slides", "", e.slides(bodies), "", "")
	return e.addAssets(sections)
}

// whole is the page with the whole book, to be printed.
const whole = "docs/book/whole.html"

var (
	anchors      = regexp.MustCompile(`( id="| href="#)`)
	chapterLinks = regexp.MustCompile(` href="../../(docs/book/[^"/]+)\.html(?:#([^"]*))?"`)
)

// printed returns the chapters for readers. What follows the glossary is for teachers and authors.
func (e *edition) printed() []string {
	if at := slices.Index(e.chapters, glossary); at >= 0 {
		return e.chapters[:at+1]
	}
	return e.chapters
}

// onePage joins the chapters. The links between them become links in the page, where each anchor begins with the name
// of its chapter.
func (e *edition) onePage(bodies map[string][]byte) string {
	chapters := e.printed()
	ids := map[string]string{}
	for _, name := range chapters {
		at := strings.TrimSuffix(target(name), ".html")
		ids[at] = path.Base(at)
	}
	var b strings.Builder
	for _, name := range chapters {
		id := ids[strings.TrimSuffix(target(name), ".html")]
		text := anchors.ReplaceAllString(string(bodies[name]), "${1}"+id+"--")
		text = chapterLinks.ReplaceAllStringFunc(text, func(link string) string {
			m := chapterLinks.FindStringSubmatch(link)
			switch to := ids[m[1]]; {
			case to == "":
				return link
			case m[2] == "":
				return ` href="#` + to + `"`
			default:
				return ` href="#` + to + "--" + m[2] + `"`
			}
		})
		fmt.Fprintf(&b, "<article id=\"%s\">\n%s</article>\n", id, text)
	}
	return b.String()
}

// slides is the page with the figures of the book, to be shown or printed.
const slides = "docs/book/slides.html"

var slideParts = regexp.MustCompile(`<h[12] id="[^"]*">(.*)</h[12]>|<img src="[^"]*" alt="([^"]*)" />`)

// slides makes a slide of each figure, with the heading above it and its description as the caption. The first slide of
// a chapter has the headings of its sections, too.
func (e *edition) slides(bodies map[string][]byte) string {
	var b strings.Builder
	for _, name := range e.printed() {
		heading, below := "", "<ul>\n"+e.pages[name].sectionLinks(path.Base(target(name)))+"</ul>\n"
		for _, m := range slideParts.FindAllStringSubmatch(string(bodies[name]), -1) {
			if m[1] != "" {
				heading = m[1]
				continue
			}
			fmt.Fprintf(&b, "<section class=\"slide\">\n<h2>%s</h2>\n<figure>%s<figcaption>%s</figcaption></figure>\n"+
				"%s</section>\n", heading, m[0], m[2], below)
			below = ""
		}
	}
	return b.String()
}

// page returns a page of the site with a body. The last two are links to its neighbours, or empty.
func (e *edition) page(name, title, contents, body, before, after string) []byte {
	try := ""
	if e.Try {
		try = "\n<li><a href=\"" + relative(name, Try) + "\">The playground: all of it in this browser</a></li>"
	}
	return []byte(strings.NewReplacer(
		"{{try}}", try, "{{title}}", html.EscapeString(title), "{{root}}", relative(name, ""),
		"{{book}}", list(name, e.chapters, e.pages), "{{guides}}", list(name, e.guides, e.pages),
		"{{contents}}", contents, "{{body}}", body, "{{before}}", before, "{{after}}", after,
	).Replace(pageText))
}

func inside(dir string) func(string) bool {
	return func(name string) bool { return strings.HasPrefix(name, dir+"/") }
}

func outside(dir string) func(string) bool {
	return func(name string) bool { return !inside(dir)(name) }
}

// addAssets adds the style, the program of the search, and what it searches.
func (e *edition) addAssets(sections []section) error {
	entries, err := fs.ReadDir(assets, "assets")
	if err != nil {
		return err
	}
	for _, entry := range entries {
		name := "assets/" + entry.Name()
		if e.files[name], err = fs.ReadFile(assets, name); err != nil {
			return err
		}
	}
	e.files[Index] = fmt.Appendf(nil, `<!doctype html>
<meta http-equiv="refresh" content="0; url=%s">
<a href="%[1]s">Flyball</a>
`, target(book))
	found, err := json.Marshal(sections)
	if err != nil {
		return err
	}
	// A page that is opened as a file may not fetch another file, but it may run a script.
	e.files["assets/sections.js"] = fmt.Appendf(nil, "globalThis.flyballSections = %s;\n", found)
	return nil
}

// File returns a file of the site by its path, which has no slash at the beginning. A folder has none.
func (s *Site) File(name string) ([]byte, bool) {
	text, ok := s.files[name]
	return text, ok
}

// Names returns the paths of all files, sorted.
func (s *Site) Names() []string {
	return slices.Sorted(maps.Keys(s.files))
}

// WriteTo writes the site into a folder, which it makes if it is not there. It deletes nothing.
func (s *Site) WriteTo(dir string) error {
	for name, text := range s.files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(file, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// list returns the items of a list of links from one page to others. One of them may be the page itself.
func list(from string, to []string, pages map[string]*page) string {
	var b strings.Builder
	for _, name := range to {
		here := ""
		if name == from {
			here = ` aria-current="page"`
		}
		fmt.Fprintf(&b, "\n<li><a href=\"%s\"%s>%s</a></li>",
			html.EscapeString(relative(from, target(name))), here, html.EscapeString(pages[name].title))
	}
	return b.String()
}

// neighbour returns a link from one page to the one before or after it. The format is for that one's title.
func neighbour(from string, to *page, relation, format string) string {
	return fmt.Sprintf(`<a rel="%s" href="%s">`+format+`</a>`,
		relation, html.EscapeString(relative(from, target(to.name))), html.EscapeString(to.title))
}

// target is the page that a Markdown file becomes. A README is what a folder shows.
func target(name string) string {
	dir, file := path.Split(name)
	if file == "README.md" {
		if dir == "" {
			return "readme.html"
		}
		return dir + "index.html"
	}
	return strings.TrimSuffix(name, ".md") + ".html"
}

// relative is the address of a path, seen from a page.
func relative(from, to string) string {
	return strings.Repeat("../", strings.Count(from, "/")) + to
}
