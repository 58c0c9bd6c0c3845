package site

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"regexp"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/flyball-dev/flyball"
)

// TestSite renders the documentation as it is, and follows every address of every page.
func TestSite(t *testing.T) {
	t.Run("embedded", func(t *testing.T) { testSite(t, flyball.Docs) })
	t.Run("checkout", func(t *testing.T) {
		s := testSite(t, os.DirFS("../../.."))
		chapter, _ := s.File("docs/book/08-sync-handler.html")
		if regexp.MustCompile(`<p class="caption">[^<]`).Match(chapter) ||
			!strings.Contains(string(chapter), `<a href="../../source/reconcile/worker.go.html#L`) {
			t.Error("chapter 8 has an excerpt without a link to its source")
		}
	})
}

func testSite(t *testing.T, docs fs.FS) *Site {
	s, err := New(docs, Options{})
	if err != nil {
		t.Fatal(err)
	}
	address := regexp.MustCompile(`(?:href|src)="([^"]*)"`)
	for _, name := range s.Names() {
		if path.Ext(name) != ".html" {
			continue
		}
		text, _ := s.File(name)
		for _, m := range address.FindAllStringSubmatch(string(text), -1) {
			to, fragment, _ := strings.Cut(m[1], "#")
			if strings.Contains(to, "://") {
				continue
			}
			target := name
			if to != "" {
				target = path.Join(path.Dir(name), to)
			}
			found, ok := s.File(target)
			if !ok {
				t.Errorf("%s: nothing is at %s", name, m[1])
				continue
			}
			if fragment != "" && !strings.Contains(string(found), `id="`+fragment+`"`) {
				t.Errorf("%s: %s has no such place", name, m[1])
			}
		}
		if strings.Contains(string(text), "<script>") || strings.Contains(string(text), "style=\"") {
			t.Errorf("%s has a script or a style of its own, which the server's policy forbids", name)
		}
	}
	chapter, _ := s.File("docs/book/08-sync-handler.html")
	for _, want := range []string{
		`<title>8. processNextWorkItem and syncHandler · Flyball</title>`, // its own title
		`<a href="../../docs/book/08-sync-handler.html" aria-current="page">`,
		`<a rel="next" href="../../docs/book/09-read-your-writes.html">9. `,
		`<li><a href="#check-yourself">Check yourself</a></li>`, `<h2 id="check-yourself">`,
		`<details>`, `<span class="k">func</span>`,
		`called a <a href="../../docs/book/glossary.html#term-poison-key"><em>poison key</em></a>.`,
	} {
		if !strings.Contains(string(chapter), want) {
			t.Errorf("the page of chapter 8 has no %s", want)
		}
	}
	printed, _ := s.File("docs/book/whole.html")
	end := 0
	for _, want := range []string{
		`<article id="index">`, `<a href="#08-sync-handler">`, `<article id="01-control-loop">`,
		`<article id="08-sync-handler">`, `called a <a href="#glossary--term-poison-key">`,
		`<h2 id="08-sync-handler--check-yourself">`, `<article id="13-capstone">`, `<article id="glossary">`,
		`id="glossary--term-poison-key"`,
	} {
		at := strings.Index(string(printed[end:]), want)
		if at < 0 {
			t.Fatalf("the book on one page has no %s, or not in this place", want)
		}
		end += at
	}
	slides, _ := s.File("docs/book/slides.html")
	for _, picture := range regexp.MustCompile(`<img [^>]*>`).FindAll(printed, -1) {
		if !bytes.Contains(slides, picture) {
			t.Errorf("there is no slide with %s", picture)
		}
	}
	if want := `<section class="slide">
<h2>Dirty and processing</h2>
<figure><img src="images/07-states.svg" alt="The four states of a key, and the operations between them" />` +
		`<figcaption>The four states of a key, and the operations between them</figcaption></figure>
</section>
`; !strings.Contains(string(slides), want) {
		t.Errorf("the slides have no %s", want)
	}
	sections, _ := s.File("assets/sections.js")
	for _, want := range []string{
		`"address":"docs/book/07-workqueue.html#check-yourself"`,
		`#term-actual-state","page":"Glossary","heading":"actual state","text":"What is now."`,
	} {
		if !strings.Contains(string(sections), want) {
			t.Errorf("the search does not have %s", want)
		}
	}
	return s
}

// docs is a small documentation.
func docs(page string) fstest.MapFS {
	return fstest.MapFS{
		"README.md":           {Data: []byte("# Top\n")},
		"docs/README.md":      {Data: []byte("# Docs\n\n[a page](page.md) [the book](book/README.md)\n")},
		"docs/page.md":        {Data: []byte(page)},
		"docs/picture.svg":    {Data: []byte("<svg/>")},
		"a/known.go":          {Data: []byte("package a\n\nvar b = 1\n")},
		"docs/book/README.md": {Data: []byte("# Book\n\n[first](1.md)\n")},
		"docs/book/1.md":      {Data: []byte("# One\n\n## What next?\n\n## What next?\n")},
	}
}

func TestPage(t *testing.T) {
	for _, c := range []struct{ text, html, err string }{
		{text: "[c](book/1.md)", html: `<a href="../docs/book/1.html">c</a>`},
		{text: "[c](book/1.md#what-next)", html: `<a href="../docs/book/1.html#what-next">c</a>`},
		{text: "[c](book/1.md#what-next-1)", html: `<a href="../docs/book/1.html#what-next-1">c</a>`},
		{text: "[c](book/1.md#gone)", err: "docs/page.md: docs/book/1.md has no heading #gone"},
		{text: "[c](gone.md)", err: "docs/page.md: there is no page docs/gone.md"},
		{text: "![p](gone.svg)", err: "docs/page.md: there is no picture docs/gone.svg"},
		{text: "![p](picture.svg)", html: `<p><a href="picture.svg"><img src="picture.svg" alt="p" /></a></p>`},
		{text: "[![p](picture.svg)](book/1.md)", html: `<a href="../docs/book/1.html"><img src="picture.svg"`},
		{text: "[p](picture.svg)", html: `<a href="../docs/picture.svg">p</a>`},
		{text: "[top](../README.md)", html: `<a href="../readme.html">top</a>`},
		{text: "[code](../a/b.go)", html: `<a href="https://github.com/flyball-dev/flyball/blob/main/a/b.go">code</a>`},
		{text: "[code](../a/known.go)", html: `<a href="../source/a/known.go.html">code</a>`},
		{
			text: "<!-- snippet: a/known.go -->\n```go\nvar b = 1\n```",
			html: `<p class="caption"><a href="../source/a/known.go.html#L3">a/known.go</a></p>` + "\n<pre",
		},
		{text: "<!-- snippet: a/b.go -->\n```go\nvar b = 1\n```", html: `<p class="caption">a/b.go</p>`},
		{text: "[out](https://go.dev/a.md)", html: `<a href="https://go.dev/a.md">out</a>`},
		{text: "# A `b` <c>!", html: `<h1 id="a-b-">`},
		{
			text: "```go\n// All.\nfunc f() (n int) { return len(\"<b>\") - 1 }\n\n\tp.Go(…)\n```",
			html: `<code data-language="go"><span class="c">// All.</span>` + "\n" +
				`<span class="k">func</span> <span class="f">f</span>() (n <span class="k">int</span>) { ` +
				`<span class="k">return</span> <span class="f">len</span>` +
				`(<span class="s">&#34;&lt;b&gt;&#34;</span>) - ` +
				`<span class="m">1</span> }` + "\n\n\tp." + `<span class="f">Go</span>(…)` + "\n</code>",
		},
		{
			text: "```yaml\nspec: # all\n- a/b: x:y#z\n```",
			html: `<span class="k">spec</span>: <span class="c"># all</span>` + "\n- " +
				`<span class="k">a/b</span>: x:y#z`,
		},
		{text: "```console\n$ cat <file\n```", html: "<code data-language=\"console\">$ cat &lt;file\n</code>"},
		{text: "| a |\n|---|\n| b |", html: "<td>b</td>"},
		{
			text: "**Watch it happen:** run `bin/flyball demo --step --scenario rollout` and look.",
			html: `look. <form class="watch" method="post" action="/watch" target="_blank">` +
				`<input type="hidden" name="scenario" value="rollout"><button>Watch it now</button></form></p>`,
		},
		{text: "Run `flyball demo --step`.", html: "<p>Run <code>flyball demo --step</code>.</p>"},
	} {
		s, err := New(docs(c.text), Options{Watch: "/watch"})
		if c.err != "" {
			if err == nil || err.Error() != c.err {
				t.Errorf("%s: error %v, want %s", c.text, err, c.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.text, err)
			continue
		}
		if page, _ := s.File("docs/page.html"); !strings.Contains(string(page), c.html) {
			t.Errorf("%s: no %s in\n%s", c.text, c.html, page)
		}
	}
}

func TestNoDocumentation(t *testing.T) {
	if _, err := New(fstest.MapFS{}, Options{}); err == nil {
		t.Error("an empty file system is rendered")
	}
	_, err := New(fstest.MapFS{"README.md": {}, "docs/a.md": {}}, Options{})
	if want := "this is no documentation of Flyball: docs/README.md and docs/book/README.md are missing"; err == nil ||
		err.Error() != want {
		t.Errorf("error %v, want %s", err, want)
	}
}

// TestWriteTo: what is written is what is served, also a second time.
func TestWriteTo(t *testing.T) {
	dir := t.TempDir()
	s, err := New(docs("# Page\n"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := s.WriteTo(dir); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range s.Names() {
		want, _ := s.File(name)
		if got, err := os.ReadFile(path.Join(dir, name)); err != nil || string(got) != string(want) {
			t.Errorf("%s: %v, or another text", name, err)
		}
	}
}

// TestSearch runs the page's search where there is a JavaScript engine.
func TestSearch(t *testing.T) {
	node, err := exec.LookPath("node")
	if err != nil {
		t.Skip("node is not installed; make test-page tests the search in a browser")
	}
	text, err := os.ReadFile("assets/search.js")
	if err != nil {
		t.Fatal(err)
	}
	const setting = `
const element = () => ({dataset: {root: ""}, addEventListener() {}});
globalThis.document = {getElementById: element, addEventListener() {}};
`
	const question = `
const s = (page, heading, text, address = "") => ({page, heading, text, address,
  head: (page + " " + heading).toLowerCase(), all: (page + " " + heading + " " + text).toLowerCase()});
const all = [s("Queue", "Delays", "A heap."), s("Heap", "Made", "Of a queue."), s("Queue", "Keys", "A heap, a heap."),
  s("Queue", "Book", "A heap.", "docs/book/7.html#queue"), s("Heap", "Term", "A queue", "docs/book/g.html#term-heap")];
console.log(found(all, ["queue", "heap"]).map((x) => x.heading).join(" "));
console.log(found(all, ["nothing"]).length);
`
	out, err := exec.CommandContext(t.Context(), node, "-e", setting+string(text)+question).CombinedOutput()
	if want := "Term Book Keys Delays Made\n0\n"; err != nil || string(out) != want {
		t.Errorf("%v: %q, want %q", err, out, want)
	}
}

// TestCells: the search tells the cells of a table apart.
func TestCells(t *testing.T) {
	s, err := New(docs("# Page\n\n| a | b |\n|---|---|\n| c | d |\n"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := s.File("assets/sections.js"); !strings.Contains(string(text), `"heading":"Page","text":"a b c d"`) {
		t.Errorf("the search has %s", text)
	}
}
