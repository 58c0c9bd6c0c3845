package site

import (
	"bytes"
	"cmp"
	"fmt"
	"go/scanner"
	"go/token"
	"html"
	"io/fs"
	"path"
	"regexp"
	"strings"

	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"
)

// codeRenderer renders blocks of code. The parts of Go and YAML get classes, whose colours are in assets/site.css: k is
// for keywords, types and keys, f for functions, s for strings, m for numbers and constants, c for comments.
type codeRenderer struct{}

func (codeRenderer) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(ast.KindFencedCodeBlock, block)
}

func block(b util.BufWriter, source []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
	if !entering {
		return ast.WalkContinue, nil
	}
	code := n.(*ast.FencedCodeBlock)
	language := string(code.Language(source))
	if caption, _ := code.AttributeString("caption"); caption != "" {
		fmt.Fprintf(b, "<p class=\"caption\">%s</p>\n", caption)
	}
	_, err := fmt.Fprintf(b, "<pre tabindex=\"0\"><code data-language=\"%s\">%s</code></pre>\n",
		html.EscapeString(language), colour(language, string(code.Lines().Value(source))))
	return ast.WalkContinue, err
}

// colour returns text in a language as HTML.
func colour(language, text string) string {
	switch language {
	case "go":
		return colourGo(text)
	case "yaml":
		return colourYAML(text)
	}
	return html.EscapeString(text)
}

// excerpt matches the comment before a block of code that is an excerpt from a file.
var excerpt = regexp.MustCompile(`^<!-- snippet: (\S+) -->`)

// caption returns the name of the file that a block of code is from, if it is an excerpt. The name is a link to the
// line where the excerpt begins, if the file system has the file.
func (p *page) caption(code *ast.FencedCodeBlock, e *edition) string {
	comment, is := code.PreviousSibling().(*ast.HTMLBlock)
	if !is {
		return ""
	}
	m := excerpt.FindSubmatch(comment.Lines().Value(p.source))
	if m == nil {
		return ""
	}
	name := string(m[1])
	text := e.source(name)
	if text == nil {
		return html.EscapeString(name)
	}
	before, _, _ := bytes.Cut(text, code.Lines().Value(p.source))
	return fmt.Sprintf(`<a href="%s#L%d">%s</a>`, html.EscapeString(relative(p.name, sourcePage(name))),
		bytes.Count(before, []byte("\n"))+1, html.EscapeString(name))
}

// sourcePage is the page that shows a source file.
func sourcePage(name string) string { return "source/" + name + ".html" }

// source returns a file of the repository and adds a page that shows it, with an anchor such as L1 at each line. It
// returns nil if the file system does not have the file.
func (e *edition) source(name string) []byte {
	text, err := fs.ReadFile(e.docs, name)
	if err != nil {
		return nil
	}
	at := sourcePage(name)
	if e.files[at] != nil {
		return text
	}
	coloured := colour(strings.TrimPrefix(path.Ext(name), "."), string(text))
	lines := strings.Split(strings.TrimSuffix(coloured, "\n"), "\n")
	for i, line := range lines {
		lines[i] = fmt.Sprintf(`<i id="L%d"></i>%s`, i+1, line)
	}
	body := fmt.Sprintf("<h1>%s</h1>\n<pre tabindex=\"0\" class=\"source\"><code>%s</code></pre>",
		html.EscapeString(name), strings.Join(lines, "\n"))
	e.files[at] = e.page(at, name, "", body, "", "")
	return text
}

// coloured returns text as HTML, in the colour of a class unless that is empty.
func coloured(class, text string) string {
	text = html.EscapeString(text)
	if class == "" {
		return text
	}
	return `<span class="` + class + `">` + text + `</span>`
}

// predeclared has the classes of Go's predeclared names.
var predeclared = map[string]string{}

func init() {
	for class, names := range map[string]string{
		"k": "any bool byte comparable error float32 float64 int int8 int16 int32 int64 rune string uint uint8 " +
			"uint16 uint32 uint64 uintptr",
		"m": "false iota nil true",
		"f": "append cap clear close copy delete len make max min new panic recover",
	} {
		for name := range strings.FieldsSeq(names) {
			predeclared[name] = class
		}
	}
}

// colourGo returns Go as HTML. The text may be any part of a file.
func colourGo(text string) string {
	var b strings.Builder
	var s scanner.Scanner
	file := token.NewFileSet().AddFile("", -1, len(text))
	s.Init(file, []byte(text), nil, scanner.ScanComments)
	end := 0
	for pos, tok, literal := s.Scan(); tok != token.EOF; pos, tok, literal = s.Scan() {
		if literal == "\n" {
			continue // the scanner ended a statement here
		}
		literal = cmp.Or(literal, tok.String())
		begin := file.Offset(pos)
		b.WriteString(html.EscapeString(text[end:begin]))
		end = begin + len(literal)
		b.WriteString(coloured(goClass(tok, literal, strings.HasPrefix(text[end:], "(")), literal))
	}
	return b.String() + html.EscapeString(text[end:])
}

// goClass returns the class of a token of Go.
func goClass(tok token.Token, literal string, called bool) string {
	switch {
	case tok == token.COMMENT:
		return "c"
	case tok == token.STRING, tok == token.CHAR:
		return "s"
	case tok.IsLiteral() && tok != token.IDENT:
		return "m"
	case tok.IsKeyword():
		return "k"
	case predeclared[literal] == "" && tok == token.IDENT && called:
		return "f"
	}
	return predeclared[literal]
}

// yamlKey matches a line of YAML that begins with a key.
var yamlKey = regexp.MustCompile(`^([ -]*)([\w./-]+)(:(?: .*)?)$`)

// colourYAML returns YAML as HTML, with its keys and comments in colours.
func colourYAML(text string) string {
	lines := strings.Split(text, "\n")
	for i, line := range lines {
		comment := ""
		if at := strings.Index(" "+line, " #"); at >= 0 {
			line, comment = line[:at], coloured("c", line[at:])
		}
		if m := yamlKey.FindStringSubmatch(line); m != nil {
			lines[i] = m[1] + coloured("k", m[2]) + html.EscapeString(m[3]) + comment
			continue
		}
		lines[i] = html.EscapeString(line) + comment
	}
	return strings.Join(lines, "\n")
}
