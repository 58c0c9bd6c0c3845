package site

import (
	"bytes"
	"fmt"
	"html/template"

	chroma "github.com/alecthomas/chroma/v2"
	highlight "github.com/alecthomas/chroma/v2/formatters/html"
	"github.com/alecthomas/chroma/v2/lexers"
	"github.com/alecthomas/chroma/v2/styles"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/util"
)

// The styles of code on light and on dark pages.
const (
	lightStyle = "github"
	darkStyle  = "github-dark"
)

// coloured writes classes, so that one page serves light and dark.
var coloured = highlight.New(highlight.WithClasses(true), highlight.PreventSurroundingPre(true))

// colourSheet returns the style sheet of code.
func colourSheet() ([]byte, error) {
	var b bytes.Buffer
	b.WriteString("/* Code on light pages, and on paper. */\n")
	if err := coloured.WriteCSS(&b, styles.Get(lightStyle)); err != nil {
		return nil, err
	}
	b.WriteString("@media screen and (prefers-color-scheme: dark) {\n")
	if err := coloured.WriteCSS(&b, styles.Get(darkStyle)); err != nil {
		return nil, err
	}
	b.WriteString("}\n")
	return b.Bytes(), nil
}

// codeRenderer renders blocks of code in colours.
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
	text := string(code.Lines().Value(source))
	fmt.Fprintf(b, `<pre class="chroma" tabindex="0"><code data-language="%s">`, template.HTMLEscapeString(language))
	if err := colour(b, language, text); err != nil {
		return ast.WalkStop, err
	}
	_, err := b.WriteString("</code></pre>\n")
	return ast.WalkContinue, err
}

// colour writes code in the colours of its language. The output of programs has no language.
func colour(b util.BufWriter, language, text string) error {
	lexer := lexers.Get(language)
	if lexer == nil || language == "text" || language == "console" {
		template.HTMLEscape(b, []byte(text))
		return nil
	}
	tokens, err := chroma.Coalesce(lexer).Tokenise(nil, text)
	if err != nil {
		return err
	}
	return coloured.Format(b, styles.Get(lightStyle), tokens)
}
