package site

import (
	"bytes"
	"errors"
	"fmt"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

// markdown reads what forges read. The pages are our own, so that their HTML, such as details, is let through.
func markdown(o Options) goldmark.Markdown {
	return goldmark.New(
		goldmark.WithExtensions(extension.GFM),
		goldmark.WithRendererOptions(html.WithUnsafe(), renderer.WithNodeRenderers(
			util.Prioritized(codeRenderer{}, 100), util.Prioritized(watchRenderer{o.Watch}, 100),
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
	p.tree = markdown(Options{}).Parser().Parse(text.NewReader(source))
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
		id := anchor(words)
		n := taken[id]
		if taken[id]++; n > 0 {
			id = fmt.Sprintf("%s-%d", id, n)
		}
		h.SetAttributeString("id", []byte(id))
		p.headings = append(p.headings, heading{id, words, h})
	}
	return p
}

// anchor returns the name that forges give to a heading: in small letters, with hyphens for spaces, and without signs.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
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
		case *ast.Paragraph, *ast.TextBlock:
			b.WriteByte(' ')
		case *ast.FencedCodeBlock:
			b.WriteByte(' ')
			b.Write(n.Lines().Value(source))
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// sections returns the parts of the page for the search.
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
	return all
}

// linked returns the pages that this page has links to, in the order of the last link to each.
func (p *page) linked(pages map[string]*page) (names []string) {
	for n := range descendants(p.tree) {
		if l, is := n.(*ast.Link); is {
			name := path.Join(path.Dir(p.name), string(l.Destination))
			if pages[name] != nil && name != p.name {
				names = append(slices.DeleteFunc(names, func(n string) bool { return n == name }), name)
			}
		}
	}
	return names
}

// html renders the page. Links to pages lead to what they become, and links to other files of the repository to the
// forge.
func (p *page) html(pages map[string]*page, files map[string][]byte, o Options) ([]byte, error) {
	var errs []error
	for n := range descendants(p.tree) {
		var err error
		switch n := n.(type) {
		case *ast.Link:
			n.Destination, err = p.address(string(n.Destination), pages, files)
		case *ast.Image:
			if name := path.Join(path.Dir(p.name), string(n.Destination)); files[name] == nil {
				err = fmt.Errorf("there is no picture %s", name)
			}
		}
		errs = append(errs, err)
	}
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	if err := markdown(o).Renderer().Render(&b, p.source, p.tree); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// address is where a link of the page leads.
func (p *page) address(link string, pages map[string]*page, files map[string][]byte) ([]byte, error) {
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
	switch to := pages[name]; {
	case to != nil:
		if fragment != "" && !slices.ContainsFunc(to.headings, func(h heading) bool { return h.id == u.Fragment }) {
			return nil, fmt.Errorf("%s has no heading %s", name, fragment)
		}
		if to == p {
			return []byte(fragment), nil
		}
		return []byte(relative(p.name, target(name)) + fragment), nil
	case files[name] != nil:
		return []byte(relative(p.name, name)), nil
	case strings.HasPrefix(name, "docs/") && path.Ext(name) == ".md":
		return nil, fmt.Errorf("there is no page %s", name)
	}
	return []byte(forge + name + fragment), nil
}

// watchRenderer renders paragraphs.
type watchRenderer struct{ to string }

func (w watchRenderer) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindParagraph, w.paragraph)
}

var (
	watchLine = regexp.MustCompile(`(?s)^\*\*Watch it happen:\*\*.*?` + "`(?:bin/)?flyball demo --step([^`]*)`")
	demoFlag  = regexp.MustCompile(`--([a-z]+)[ =]([a-z0-9]+)`)
)

// paragraph renders a paragraph. One that begins with "Watch it happen" gets a button that starts the demo, if the site
// can.
func (w watchRenderer) paragraph(b util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if entering {
		_, err := b.WriteString("<p>")
		return ast.WalkContinue, err
	}
	if found := watchLine.FindSubmatch(n.Lines().Value(source)); found != nil && w.to != "" {
		fmt.Fprintf(b, ` <form class="watch" method="post" action="%s" target="_blank">`, w.to)
		for _, flag := range demoFlag.FindAllSubmatch(found[1], -1) {
			fmt.Fprintf(b, `<input type="hidden" name="%s" value="%s">`, flag[1], flag[2])
		}
		b.WriteString(`<button>Watch it now</button></form>`)
	}
	_, err := b.WriteString("</p>\n")
	return ast.WalkContinue, err
}
