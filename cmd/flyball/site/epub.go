package site

import (
	"archive/zip"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"html"
	"io"
	"path"
	"regexp"
	"strings"
	"time"
)

// epubName is the book as an EPUB 3.
const epubName = "docs/book/flyball.epub"

const (
	epubContainer = `<?xml version="1.0" encoding="UTF-8"?>
<container version="1.0" xmlns="urn:oasis:names:tc:opendocument:xmlns:container">
<rootfiles><rootfile full-path="content.opf" media-type="application/oebps-package+xml"/></rootfiles>
</container>
`
	epubPackage = `<?xml version="1.0" encoding="UTF-8"?>
<package xmlns="http://www.idpf.org/2007/opf" version="3.0" unique-identifier="id" xml:lang="en">
<metadata xmlns:dc="http://purl.org/dc/elements/1.1/">
<dc:identifier id="id">` + forge + book + `</dc:identifier>
<dc:title>Flyball: how a Kubernetes controller works</dc:title>
<dc:language>en</dc:language>
<meta property="dcterms:modified">%s</meta>
</metadata>
<manifest>
<item id="nav" href="nav.xhtml" media-type="application/xhtml+xml" properties="nav"/>
<item id="css" href="book.css" media-type="text/css"/>
%s</manifest>
<spine>
%s</spine>
</package>
`
	epubPage = `<?xml version="1.0" encoding="UTF-8"?>
<html xmlns="http://www.w3.org/1999/xhtml" xmlns:epub="http://www.idpf.org/2007/ops" lang="en" xml:lang="en">
<head><title>%s</title><link rel="stylesheet" href="book.css"/></head>
<body>
%s</body>
</html>
`
	epubStyle = `pre { white-space: pre-wrap; font-size: .75em; }
img { max-width: 100%; }
table { border-collapse: collapse; font-size: .9em; }
th, td { border: 1px solid; padding: .2em .4em; text-align: left; vertical-align: top; }
`
)

var (
	screen = regexp.MustCompile(`<a href="images/[^"]*">(<img [^>]*>)</a>| <form .*?</form>`) // what is for browsers
	links  = regexp.MustCompile(` href="(\.\./[^"#]+)`)
)

// epub returns the book in the form of e-readers. A link out of the book leads to the forge.
func (e *edition) epub(bodies map[string][]byte) ([]byte, error) {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	var errs []error
	add := func(name string, method uint16, text string) {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name, Method: method})
		if err == nil {
			_, err = io.WriteString(w, text)
		}
		errs = append(errs, err)
	}
	add("mimetype", zip.Store, "application/epub+zip") // Readers expect it first, and not compressed.
	add("META-INF/container.xml", zip.Deflate, epubContainer)
	add("book.css", zip.Deflate, epubStyle)
	chapters, addresses := e.printed(), map[string]string{}
	for name := range e.pages {
		addresses[target(name)] = forge + name
	}
	for _, name := range chapters {
		addresses[target(name)] = epubChapter(name)
	}
	var items, spine, contents strings.Builder
	for i, name := range chapters {
		at, title := epubChapter(name), html.EscapeString(e.pages[name].title)
		fmt.Fprintf(&items, "<item id=\"c%d\" href=\"%s\" media-type=\"application/xhtml+xml\"/>\n", i, at)
		fmt.Fprintf(&spine, "<itemref idref=\"c%d\"/>\n", i)
		fmt.Fprintf(&contents, "<li><a href=\"%s\">%s</a></li>\n", at, title)
		text := screen.ReplaceAllString(string(bodies[name]), "$1")
		text = links.ReplaceAllStringFunc(text, func(link string) string {
			to := path.Join(path.Dir(book), links.FindStringSubmatch(link)[1])
			source := strings.TrimSuffix(strings.TrimPrefix(to, "source/"), ".html")
			return ` href="` + cmp.Or(addresses[to], forge+source)
		})
		add(at, zip.Deflate, fmt.Sprintf(epubPage, title, text))
	}
	add("nav.xhtml", zip.Deflate, fmt.Sprintf(epubPage, "Contents",
		"<nav epub:type=\"toc\"><h1>Contents</h1>\n<ol>\n"+contents.String()+"</ol></nav>\n"))
	for name, text := range e.files {
		if picture, is := strings.CutPrefix(name, "docs/book/images/"); is {
			fmt.Fprintf(&items, "<item id=\"p-%s\" href=\"images/%[1]s\" media-type=\"image/svg+xml\"/>\n", picture)
			add("images/"+picture, zip.Deflate, string(text))
		}
	}
	modified := time.Now().UTC().Format(time.RFC3339)
	add("content.opf", zip.Deflate, fmt.Sprintf(epubPackage, modified, &items, &spine))
	err := errors.Join(append(errs, z.Close())...)
	return b.Bytes(), err
}

// epubChapter is the path of a chapter in the EPUB.
func epubChapter(name string) string {
	return strings.TrimSuffix(path.Base(target(name)), ".html") + ".xhtml"
}
