package site

import (
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

const (
	// start is the page that the site begins with, and book has the table of contents of the book.
	start = "docs/README.md"
	book  = "docs/book/README.md"
)

// Index is the path of the page that a reader sees first.
const Index = "index.html"

// forge is where files of the repository are that the site does not have.
const forge = "https://github.com/flyball-dev/flyball/blob/main/"

// leftOut are the endings of the files that a site leaves out: the programs beside the pages of the book. Pages link
// them at the forge.
var leftOut = []string{".go", ".conf"}

// Options configures a site.
type Options struct {
	// Watch is where a form is sent that starts the demo, with the demo's flags as its fields. If it is empty, the
	// pages only name the command.
	Watch string
}

// Site is a rendered documentation. It does not change.
type Site struct {
	files map[string][]byte // by path, without a slash at the beginning
	pages []string          // the Markdown files
}

//go:embed assets
var assets embed.FS

// pageText is a page with gaps, which are named in braces.
//
//go:embed page.html
var pageText string

// New renders README.md and the folder docs of the file system.
//
// Errors: a file that cannot be read; a link to a page that is not there, or to a heading that its page does not have.
func New(docs fs.FS, o Options) (*Site, error) {
	s := &Site{files: map[string][]byte{}}
	pages := map[string]*page{}
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
				pages[name] = parse(name, text)
				s.pages = append(s.pages, name)
				return nil
			}
			s.files[name] = text
			return nil
		})
		if err != nil {
			return nil, fmt.Errorf("read the documentation: %w", err)
		}
	}
	if pages[start] == nil || pages[book] == nil {
		return nil, fmt.Errorf("this is no documentation of Flyball: %s and %s are missing", start, book)
	}
	slices.Sort(s.pages)
	return s, s.render(pages, o)
}

// render writes the pages and what they refer to.
func (s *Site) render(pages map[string]*page, o Options) error {
	chapters := pages[book].linked(pages)
	chapters = append([]string{book}, slices.DeleteFunc(chapters, outside("docs/book"))...)
	guides := slices.DeleteFunc(pages[start].linked(pages), inside("docs/book"))
	var errs []error
	var sections []section
	for _, name := range s.pages {
		p := pages[name]
		body, err := p.html(pages, s.files, o)
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
			continue
		}
		sections = append(sections, p.sections()...)
		before, after := "", ""
		if at := slices.Index(chapters, name); at >= 0 {
			if at > 0 {
				before = neighbour(name, pages[chapters[at-1]], "prev", "← %s")
			}
			if at+1 < len(chapters) {
				after = neighbour(name, pages[chapters[at+1]], "next", "%s →")
			}
		}
		s.files[target(name)] = []byte(strings.NewReplacer(
			"{{title}}", html.EscapeString(p.title), "{{root}}", strings.Repeat("../", strings.Count(name, "/")),
			"{{book}}", list(name, chapters, pages), "{{guides}}", list(name, guides, pages),
			"{{body}}", string(body), "{{before}}", before, "{{after}}", after,
		).Replace(pageText))
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	return s.addAssets(sections)
}

func inside(dir string) func(string) bool {
	return func(name string) bool { return strings.HasPrefix(name, dir+"/") }
}

func outside(dir string) func(string) bool {
	return func(name string) bool { return !inside(dir)(name) }
}

// addAssets adds the style, the program of the search, and what it searches.
func (s *Site) addAssets(sections []section) error {
	entries, err := fs.ReadDir(assets, "assets")
	if err != nil {
		return err
	}
	for _, e := range entries {
		text, err := fs.ReadFile(assets, "assets/"+e.Name())
		if err != nil {
			return err
		}
		s.files["assets/"+e.Name()] = text
	}
	s.files[Index] = fmt.Appendf(nil, `<!doctype html>
<meta http-equiv="refresh" content="0; url=%s">
<a href="%[1]s">Flyball</a>
`, target(start))
	found, err := json.Marshal(sections)
	if err != nil {
		return err
	}
	// A page that is opened as a file may not fetch another file, but it may run a script.
	s.files["assets/sections.js"] = fmt.Appendf(nil, "globalThis.flyballSections = %s;\n", found)
	return nil
}

// File returns a file of the site by its path, which has no slash at the beginning. A folder has none.
func (s *Site) File(name string) ([]byte, bool) {
	text, ok := s.files[name]
	return text, ok
}

// Names returns the paths of all files, sorted.
func (s *Site) Names() []string {
	var names []string
	for name := range s.files {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
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
