// Command build writes the playground into a folder that any web server can serve: the page of package inspect, what
// the playground has more than that, and the program. It is run in the folder of the playground:
//
//	go run ./build -o DIR
package main

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

func main() {
	out := flag.String("o", "", "the folder to write into")
	flag.Parse()
	if err := build(*out); err != nil {
		fmt.Fprintln(os.Stderr, "build the playground:", err)
		os.Exit(1)
	}
}

// policy is the Content-Security-Policy of the page.
const policy = "default-src 'none'; script-src 'self' 'wasm-unsafe-eval'; worker-src 'self'; style-src 'self'; " +
	"img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; " +
	"require-trusted-types-for 'script'; trusted-types playground"

// additions are what the page has more than that of package inspect, by what each comes before.
var additions = []struct{ before, text string }{
	{`<link rel="icon"`, `<meta http-equiv="Content-Security-Policy" content="` + policy + `">` + "\n"},
	{`<script type="module" src="app.js">`, `<link rel="stylesheet" href="try.css">` + "\n"},
	{
		`<section id="story"`,
		`<section id="try" aria-label="Scenarios"><p class="words">If nothing appears here, this page is not on a ` +
			`web server, or the browser is too old. The same runs in a terminal: ` +
			"<code>flyball demo --step</code>.</p></section>\n",
	},
	{`<noscript>`, `<section id="console" aria-label="Terminal and editors"></section>` + "\n"},
}

// build writes all files.
func build(dir string) error {
	if dir == "" {
		return errors.New("-o must name a folder")
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("go env GOROOT: %w", err)
	}
	raw, packed, err := program()
	if err != nil {
		return err
	}
	s := site{files: map[string][]byte{}}
	s.read("../inspect/page/assets/*")
	s.read("page/*") // A later file takes the place of an earlier one.
	s.read(filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "wasm_exec.js"))
	for _, a := range additions {
		s.replace("index.html", a.before, a.text+a.before)
	}
	s.replace("index.html", `src="app.js"`, `src="try.js"`)
	s.replace("index.html", "<title>Flyball: inspect", "<title>Flyball: try it")
	s.replace("server.js", "program.bin", "program.bin?"+digest(packed))
	names := slices.Sorted(maps.Keys(s.files))
	names[slices.Index(names, "index.html")] = "./"
	list, listErr := json.Marshal(names)
	all, allErr := json.Marshal(s.files)
	s.replace("offline.js", "['FILES']", string(list))
	s.replace("offline.js", "VERSION", digest(all))
	s.files["program.bin"] = packed
	if err := errors.Join(listErr, allErr, s.write(dir)); err != nil {
		return err
	}
	fmt.Printf("%s: the program has %.1f MB, compressed %.1f MB\n", dir, float64(raw)/1e6, float64(len(packed))/1e6)
	if len(packed) > most {
		return fmt.Errorf("compressed, the program has more than %.1f MB: %w", most/1e6, errUpgraded)
	}
	return nil
}

// site is what the folder will have. Its methods keep the first error, which write returns.
type site struct {
	files map[string][]byte // by name
	err   error
}

// read reads the files that match a pattern.
func (s *site) read(pattern string) {
	found, err := filepath.Glob(pattern)
	if len(found) == 0 && err == nil {
		err = fmt.Errorf("no file matches %s", pattern)
	}
	s.err = cmp.Or(s.err, err)
	for _, file := range found {
		text, err := os.ReadFile(file)
		s.err = cmp.Or(s.err, err)
		s.files[filepath.Base(file)] = text
	}
}

// replace replaces what occurs once in a file.
func (s *site) replace(name, old, new string) {
	if n := bytes.Count(s.files[name], []byte(old)); n != 1 && s.err == nil {
		s.err = fmt.Errorf("%s has %s %d times, not once", name, old, n)
	}
	s.files[name] = bytes.Replace(s.files[name], []byte(old), []byte(new), 1)
}

// write writes the files into a folder.
func (s *site) write(dir string) error {
	s.err = cmp.Or(s.err, os.MkdirAll(dir, 0o755))
	for name, text := range s.files {
		if s.err == nil {
			s.err = os.WriteFile(filepath.Join(dir, name), text, 0o644)
		}
	}
	return s.err
}

// most bounds the bytes of the compressed program, for which a reader waits at the first visit.
const most = 12_000_000

func digest(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:6])
}

// program builds the program, and returns its size and its compressed text. No host of pages has a rule for files that
// end with bin, so that none compresses it again, or says that it is compressed.
func program() (size int, packed []byte, err error) {
	dir, err := os.MkdirTemp("", "playground-")
	if err != nil {
		return 0, nil, err
	}
	defer os.RemoveAll(dir)
	flags, err := smaller(dir)
	if err != nil {
		return 0, nil, err
	}
	file := filepath.Join(dir, "program")
	c := exec.Command("go", slices.Concat([]string{"build", "-ldflags=-s -w", "-o", file}, flags, []string{"."})...)
	c.Env = append(os.Environ(), "GOOS=js", "GOARCH=wasm", "GOWORK=off")
	c.Stderr = os.Stderr
	if err := c.Run(); err != nil {
		return 0, nil, fmt.Errorf("go build: %w; %w", err, errUpgraded)
	}
	raw, readErr := os.ReadFile(file)
	var b bytes.Buffer
	w, levelErr := gzip.NewWriterLevel(&b, gzip.BestCompression)
	_, writeErr := w.Write(raw)
	err = errors.Join(readErr, levelErr, writeErr, w.Close())
	return len(raw), b.Bytes(), err
}
