// Command build writes the playground into a folder that any web server can serve: the page of package inspect, what
// the playground has more than that, and the program. It is run in the folder of the playground:
//
//	go run ./build -o DIR
package main

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
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

// build writes all files. It deletes the programs of earlier builds.
func build(dir string) error {
	if dir == "" {
		return fmt.Errorf("-o must name a folder")
	}
	files := map[string][]byte{}
	for _, from := range []string{"../inspect/page/assets", "page"} { // A later file takes the place of an earlier one.
		if err := read(files, from); err != nil {
			return err
		}
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return fmt.Errorf("go env GOROOT: %w", err)
	}
	glue := filepath.Join(strings.TrimSpace(string(root)), "lib", "wasm", "wasm_exec.js")
	if files["wasm_exec.js"], err = os.ReadFile(glue); err != nil {
		return err
	}
	page := string(files["index.html"])
	for _, a := range additions {
		if page, err = replace(page, a.before, a.text+a.before); err != nil {
			return err
		}
	}
	page = strings.NewReplacer(`src="app.js"`, `src="try.js"`, "Flyball: inspect", "Flyball: try it").Replace(page)
	files["index.html"] = []byte(page)
	raw, packed, err := program()
	if err != nil {
		return err
	}
	name := "program-" + digest(packed) + ".bin"
	server, err := replace(string(files["server.js"]), "'program.bin'", "'"+name+"'")
	if err != nil {
		return err
	}
	files["server.js"] = []byte(server)
	if err := nameFiles(files); err != nil {
		return err
	}
	files[name] = packed
	if err := write(dir, files); err != nil {
		return err
	}
	fmt.Printf("%s: the program has %.1f MB, compressed %.1f MB\n", dir, float64(raw)/1e6, float64(len(packed))/1e6)
	if len(packed) > most {
		return fmt.Errorf("compressed, the program has more than %.1f MB: %w", most/1e6, errUpgraded)
	}
	return nil
}

// read reads the files of a folder.
func read(files map[string][]byte, dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name())); err != nil {
			return err
		}
	}
	return nil
}

// replace replaces what occurs once.
func replace(text, old, new string) (string, error) {
	if n := strings.Count(text, old); n != 1 {
		return "", fmt.Errorf("%s is there %d times, not once", old, n)
	}
	return strings.Replace(text, old, new, 1), nil
}

// nameFiles tells the service worker the files and what identifies them.
func nameFiles(files map[string][]byte) error {
	names := slices.DeleteFunc(slices.Sorted(maps.Keys(files)), func(n string) bool { return n == "offline.js" })
	var all bytes.Buffer
	for _, name := range names {
		all.WriteString(name)
		all.Write(files[name])
	}
	names[slices.Index(names, "index.html")] = "./"
	list, err := json.Marshal(names)
	if err != nil {
		return err
	}
	text, err := replace(string(files["offline.js"]), "['FILES']", string(list))
	if err == nil {
		text, err = replace(text, "VERSION", digest(all.Bytes()))
	}
	files["offline.js"] = []byte(text)
	return err
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
	raw, err := os.ReadFile(file)
	if err != nil {
		return 0, nil, err
	}
	var b bytes.Buffer
	w, err := gzip.NewWriterLevel(&b, gzip.BestCompression)
	if err != nil {
		return 0, nil, err
	}
	if _, err := w.Write(raw); err != nil {
		return 0, nil, err
	}
	err = w.Close()
	return len(raw), b.Bytes(), err
}

// write writes the files.
func write(dir string, files map[string][]byte) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	earlier, err := filepath.Glob(filepath.Join(dir, "program-*.bin"))
	if err != nil {
		return err
	}
	for _, file := range earlier {
		if err := os.Remove(file); err != nil {
			return err
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			return err
		}
	}
	return nil
}
