package site

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	extast "github.com/yuin/goldmark/extension/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/flyball-dev/flyball/internal/docblock"
)

// markdown reads what forges read. The pages are our own, so that their HTML, such as details, is let through.
func markdown(w watchRenderer) goldmark.Markdown {
	return goldmark.New(
		goldmark.WithExtensions(extension.GFM),
		goldmark.WithRendererOptions(html.WithUnsafe(), html.WithXHTML(), renderer.WithNodeRenderers(
			util.Prioritized(codeRenderer{}, 100), util.Prioritized(w, 100),
		)),
	)
}

// page is a Markdown file.
type page struct {
	name, title string
	source      []byte
	tree        ast.Node
	headings    []heading
}

// heading is a heading of a page. Its section ends where the next heading begins.
type heading struct {
	id, text string
	node     *ast.Heading
}

// section is what the search finds.
type section struct {
	Address string `json:"address"` // from the root of the site
	Page    string `json:"page"`
	Heading string `json:"heading"`
	Text    string `json:"text"`
}

// parse reads a page.
func parse(name string, source []byte) *page {
	p := &page{name: name, title: name, source: source}
	p.tree = markdown(watchRenderer{}).Parser().Parse(text.NewReader(source))
	taken := map[string]int{}
	for node := range descendants(p.tree) {
		h, is := node.(*ast.Heading)
		if !is {
			continue
		}
		words := plain(h, source)
		if h.Level == 1 && len(p.headings) == 0 {
			p.title = words
		}
		id := docblock.Anchor(words)
		n := taken[id]
		if taken[id]++; n > 0 {
			id = fmt.Sprintf("%s-%d", id, n)
		}
		h.SetAttributeString("id", []byte(id))
		p.headings = append(p.headings, heading{id, words, h})
	}
	return p
}

// descendants yields the nodes below a node, parents first.
func descendants(root ast.Node) func(yield func(ast.Node) bool) {
	return func(yield func(ast.Node) bool) {
		_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
			if entering && n != root && !yield(n) {
				return ast.WalkStop, nil
			}
			return ast.WalkContinue, nil
		})
	}
}

// plain returns the text of a node without its marks.
func plain(node ast.Node, source []byte) string {
	var b strings.Builder
	for n := range descendants(node) {
		switch n := n.(type) {
		case *ast.Text:
			b.Write(n.Value(source))
			if n.SoftLineBreak() || n.HardLineBreak() {
				b.WriteByte(' ')
			}
		case *ast.String:
			b.Write(n.Value)
		case *ast.Paragraph, *ast.TextBlock, *extast.TableCell:
			b.WriteByte(' ')
		case *ast.FencedCodeBlock:
			b.WriteByte(' ')
			b.Write(n.Lines().Value(source))
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// contents returns the page's table of contents, or nothing if that would be short.
func (p *page) contents() string {
	items := p.sectionLinks("")
	if strings.Count(items, "\n") < 3 {
		return ""
	}
	return "<nav class=\"contents\" aria-label=\"This page\">\n<details class=\"fold\">\n" +
		"<summary>On this page</summary>\n<ul>\n" + items + "</ul>\n</details>\n</nav>"
}

// sectionLinks returns the items of a list of links to the sections of the page, which is at an address.
func (p *page) sectionLinks(at string) string {
	var b strings.Builder
	for _, h := range p.headings {
		if h.node.Level == 2 {
			fmt.Fprintf(&b, "<li><a href=\"%s#%s\">%s</a></li>\n", at, h.id, util.EscapeHTML([]byte(h.text)))
		}
	}
	return b.String()
}

// sections returns the parts of the page for the search. Each term of the glossary is one.
func (p *page) sections() []section {
	all := []section{}
	var words []string
	end := func() {
		if len(all) > 0 {
			all[len(all)-1].Text = strings.Join(words, " ")
		}
		words = nil
	}
	for n := p.tree.FirstChild(); n != nil; n = n.NextSibling() {
		at := slices.IndexFunc(p.headings, func(h heading) bool { return h.node == n })
		if at < 0 {
			words = append(words, plain(n, p.source))
			continue
		}
		end()
		h := p.headings[at]
		all = append(all, section{Address: target(p.name) + "#" + h.id, Page: p.title, Heading: h.text})
	}
	end()
	if p.name != glossary {
		return all
	}
	for n := range descendants(p.tree) {
		if row, is := n.(*extast.TableRow); is {
			term := plain(row.FirstChild(), p.source)
			all = append(all, section{
				Address: target(p.name) + "#" + termID(term), Page: p.title, Heading: term,
				Text: plain(row.FirstChild().NextSibling(), p.source),
			})
		}
	}
	return all
}

// linked returns the pages that this page has links to, in the order of the first link to each in a list, or else the
// last link.
func (p *page) linked(pages map[string]*page) (names []string) {
	listed := map[string]bool{}
	for n := range descendants(p.tree) {
		if l, is := n.(*ast.Link); is {
			name := path.Join(path.Dir(p.name), string(l.Destination))
			if pages[name] != nil && name != p.name && !listed[name] {
				listed[name] = n.Parent().Parent().Kind() == ast.KindListItem
				names = append(slices.DeleteFunc(names, func(n string) bool { return n == name }), name)
			}
		}
	}
	return names
}

// terms gives the rows of the page's tables names, and returns these by the first cell of the row.
func (p *page) terms() map[string]string {
	ids := map[string]string{}
	for n := range descendants(p.tree) {
		if row, is := n.(*extast.TableRow); is {
			term := plain(row.FirstChild(), p.source)
			ids[strings.ToLower(term)] = termID(term)
			row.FirstChild().SetAttributeString("id", []byte(termID(term)))
		}
	}
	return ids
}

// termID is the name of a term's row.
func termID(term string) string { return "term-" + docblock.Anchor(term) }

// linkTerms links the terms that the page sets in italics, one or several of a term, to their rows in the glossary.
func (p *page) linkTerms(terms map[string]string) {
	var found []*ast.Emphasis
	for n := range descendants(p.tree) {
		if e, is := n.(*ast.Emphasis); is && e.Level == 1 {
			found = append(found, e)
		}
	}
	for _, e := range found {
		term := strings.ToLower(plain(e, p.source))
		id := cmp.Or(terms[term], terms[strings.TrimSuffix(term, "s")])
		if id == "" {
			continue
		}
		enclose(e, relative(p.name, target(glossary))+"#"+id)
	}
}

// enclose makes a node the text of a link.
func enclose(n ast.Node, destination string) {
	link := ast.NewLink()
	link.Destination = []byte(destination)
	n.Parent().ReplaceChild(n.Parent(), n, link)
	link.AppendChild(link, n)
}

// html renders the page. Links to pages and to other files of the repository lead to what these become in the site, or
// to the forge if the file system does not have the file.
func (p *page) html(e *edition) ([]byte, error) {
	var errs []error
	for _, n := range slices.Collect(descendants(p.tree)) {
		var err error
		switch n := n.(type) {
		case *ast.Link:
			m := task.FindStringSubmatch(path.Join(path.Dir(p.name), string(n.Destination)))
			if m != nil && e.Progress != nil {
				n.Title = []byte(cmp.Or(e.Progress[m[1]], "not tried"))
			}
			n.Destination, err = p.address(string(n.Destination), e)
		case *ast.FencedCodeBlock:
			n.SetAttributeString("caption", p.caption(n, e))
		case *ast.Image:
			if name := path.Join(path.Dir(p.name), string(n.Destination)); e.files[name] == nil {
				err = fmt.Errorf("there is no picture %s", name)
			}
			if n.Parent().Kind() != ast.KindLink {
				enclose(n, string(n.Destination)) // a reader can enlarge the picture where it stands alone
			}
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	if inside("docs/book")(p.name) && p.name != glossary {
		p.linkTerms(e.terms)
	}
	var b bytes.Buffer
	if err := markdown(e.watch(p.name)).Renderer().Render(&b, p.source, p.tree); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// task matches the path of a file in the folder of a task.
var task = regexp.MustCompile(`^exercises/(\d\d[a-z]-[^/]+)/`)

// address is where a link of the page leads.
func (p *page) address(link string, e *edition) ([]byte, error) {
	u, err := url.Parse(link)
	if err != nil {
		return nil, err
	}
	if u.IsAbs() {
		return []byte(link), nil
	}
	name := p.name
	if u.Path != "" {
		name = path.Join(path.Dir(p.name), u.Path)
	}
	fragment := ""
	if u.Fragment != "" {
		fragment = "#" + u.Fragment
	}
	switch to := e.pages[name]; {
	case to != nil:
		if fragment != "" && !slices.ContainsFunc(to.headings, func(h heading) bool { return h.id == u.Fragment }) {
			return nil, fmt.Errorf("%s has no heading %s", name, fragment)
		}
		if to == p {
			return []byte(fragment), nil
		}
		return []byte(relative(p.name, target(name)) + fragment), nil
	case e.files[name] != nil:
		return []byte(relative(p.name, name)), nil
	case strings.HasPrefix(name, "docs/") && path.Ext(name) == ".md":
		return nil, fmt.Errorf("there is no page %s", name)
	case path.Ext(name) != ".md" && e.source(name) != nil:
		return []byte(relative(p.name, sourcePage(name)) + fragment), nil
	}
	return []byte(forge + name + fragment), nil
}

// watchRenderer renders paragraphs. A form is sent to an address, unless that is empty.
type watchRenderer struct{ method, to string }

// watch returns what renders the paragraphs of a page.
func (o Options) watch(page string) watchRenderer {
	if o.Watch == "" && o.Try {
		return watchRenderer{"get", relative(page, Try)}
	}
	return watchRenderer{"post", o.Watch}
}

func (w watchRenderer) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindParagraph, w.paragraph)
}

var (
	watchLine = regexp.MustCompile(`(?s)^\*\*Watch it happen:\*\*.*?` + "`(?:bin/)?flyball demo --step([^`]*)`")
	demoFlag  = regexp.MustCompile(`--([a-z]+)[ =]([a-z0-9]+)`)
)

// paragraph renders a paragraph. One that begins with "Watch it happen" gets a button that starts the demo, or opens
// the playground, if the site can.
func (w watchRenderer) paragraph(b util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		_, err := b.WriteString("<p>")
		return ast.WalkContinue, err
	}
	if found := watchLine.FindSubmatch(n.Lines().Value(source)); found != nil && w.to != "" {
		fmt.Fprintf(b, ` <form class="watch" method="%s" action="%s" target="_blank">`, w.method, w.to)
		for _, flag := range demoFlag.FindAllSubmatch(found[1], -1) {
			fmt.Fprintf(b, `<input type="hidden" name="%s" value="%s">`, flag[1], flag[2])
		}
		b.WriteString(`<button>Watch it now</button></form>`)
	}
	_, err := b.WriteString("</p>\n")
	return ast.WalkContinue, err
}
