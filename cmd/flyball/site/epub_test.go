package site

import (
	"archive/zip"
	"bytes"
	"encoding/xml"
	"io"
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// TestEPUB checks what the formats ask for: mimetype is first and not compressed, the manifest names the files that
// are there, all but the style are XML, and links and pictures lead to files of the manifest.
func TestEPUB(t *testing.T) {
	s, err := New(os.DirFS("../../.."), Options{Watch: "/watch"})
	if err != nil {
		t.Fatal(err)
	}
	text, _ := s.File("docs/book/flyball.epub")
	z, err := zip.NewReader(bytes.NewReader(text), int64(len(text)))
	if err != nil {
		t.Fatal(err)
	}
	if first := z.File[0]; first.Name != "mimetype" || first.Method != zip.Store || len(first.Extra) > 0 {
		t.Errorf("the first file is %s, with method %d", first.Name, first.Method)
	}
	files := map[string]string{}
	for _, f := range z.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files[f.Name] = string(text)
		if f.Name == "mimetype" || path.Ext(f.Name) == ".css" {
			continue
		}
		d := xml.NewDecoder(bytes.NewReader(text))
		for err == nil {
			_, err = d.Token()
		}
		if err != io.EOF {
			t.Errorf("%s: %v", f.Name, err)
		}
	}
	if got := files["mimetype"]; got != "application/epub+zip" {
		t.Errorf("the type is %q", got)
	}
	var p struct {
		Items []struct {
			ID   string `xml:"id,attr"`
			Href string `xml:"href,attr"`
		} `xml:"manifest>item"`
		Spine []struct {
			ID string `xml:"idref,attr"`
		} `xml:"spine>itemref"`
	}
	if err := xml.Unmarshal([]byte(files["content.opf"]), &p); err != nil {
		t.Fatal(err)
	}
	ids := map[string]string{}
	for _, item := range p.Items {
		ids[item.ID] = item.Href
		if files[item.Href] == "" {
			t.Errorf("the manifest has %s, which is not there", item.Href)
		}
	}
	if len(p.Items) != len(files)-3 || len(ids) != len(p.Items) {
		t.Errorf("the manifest has %d items, %d of them different, for %d files", len(p.Items), len(ids), len(files))
	}
	var order []string
	for _, chapter := range p.Spine {
		order = append(order, strings.TrimSuffix(ids[chapter.ID], ".xhtml"))
	}
	if got := strings.Join(order, " "); !strings.HasPrefix(got, "index 01-control-loop 02-list-and-watch ") ||
		!strings.HasSuffix(got, " glossary") || !strings.Contains(got, " 13-capstone ") {
		t.Errorf("the chapters are %s", got)
	}
	address := regexp.MustCompile(`(?:href|src)="([^"#]+)`)
	for name, text := range files {
		if path.Ext(name) != ".xhtml" {
			continue
		}
		for _, m := range address.FindAllStringSubmatch(text, -1) {
			if files[m[1]] == "" && !strings.HasPrefix(m[1], "https://") {
				t.Errorf("%s: there is no %s", name, m[1])
			}
		}
	}
	for _, want := range []string{
		`href="https://github.com/flyball-dev/flyball/blob/main/reconcile/worker.go#L`, `href="a-proving.xhtml"`,
		`src="images/08-loop.svg"`, `href="glossary.xhtml#term-poison-key"`,
	} {
		if !strings.Contains(files["08-sync-handler.xhtml"], want) {
			t.Errorf("chapter 8 has no %s", want)
		}
	}
}
