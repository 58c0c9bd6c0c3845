package learn

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// started runs the server until the test ends, and returns its address.
func started(t *testing.T, o Options) (base string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	told, out := io.Pipe()
	ended := make(chan error, 1)
	o.Address, o.Out = "127.0.0.1:0", out
	go func() { ended <- Run(ctx, o); out.Close() }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Run: %v", err)
		}
		goleak.VerifyNone(t, goleak.IgnoreAnyFunction("github.com/dlclark/regexp2/v2.runClock"))
	})
	line, err := bufio.NewReader(told).ReadString('\n')
	if err != nil {
		t.Fatalf("%v: %v", err, <-ended)
	}
	return regexp.MustCompile(`http://[^/]*`).FindString(line)
}

// ask sends a request and returns the status and the body, without following redirects.
func ask(t *testing.T, method, target, form string, headers ...string) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, target, strings.NewReader(form))
	if err != nil {
		t.Fatal(err)
	}
	if form != "" {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
			continue
		}
		r.Header.Set(headers[i], headers[i+1])
	}
	client := &http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer, string(body)
}

func TestServe(t *testing.T) {
	base := started(t, Options{})
	for _, c := range []struct {
		method, path string
		headers      []string
		code         int
		kind, text   string
	}{
		{path: "/", code: 200, kind: "text/html; charset=utf-8", text: "docs/book/index.html"},
		{path: "/docs/book/index.html", code: 200, kind: "text/html; charset=utf-8", text: "The chapters"},
		{path: "/docs/book/images/pipeline.svg", code: 200, kind: "image/svg+xml", text: "<svg"},
		{path: "/assets/site.css", code: 200, kind: "text/css; charset=utf-8", text: "@media print"},
		{path: "/docs/api/workqueue.txt", code: 200, kind: "text/plain; charset=utf-8", text: "func New"},
		{path: "/docs/gone.html", code: 404, text: "there is no page /docs/gone.html"},
		{path: "/try/", code: 404, text: "the playground is not built: run make playground"},
		{path: "/../../etc/passwd", code: 404},
		{method: "PUT", path: "/", code: 405},
		{path: "/", headers: []string{"Host", "evil.example:80"}, code: 421},
		{path: "/watch", code: 405},
		{method: "POST", path: "/watch", code: 403, text: "from the pages of this server only"},
		{method: "POST", path: "/watch", headers: []string{"Origin", "http://evil.example"}, code: 403},
		{
			method: "POST", path: "/watch?scenario=x", headers: []string{"Origin", base}, code: 400,
			text: "--scenario x: it must be one of create, endpoints,",
		},
	} {
		answer, body := ask(t, c.method, base+c.path, "", c.headers...)
		if answer.StatusCode != c.code || !strings.Contains(body, c.text) ||
			c.kind != "" && answer.Header.Get("Content-Type") != c.kind {
			t.Errorf("%s %s %v: %s, %s: %.300s", c.method, c.path, c.headers, answer.Status,
				answer.Header.Get("Content-Type"), body)
		}
		if got := answer.Header.Get("Content-Security-Policy"); !strings.Contains(got, "default-src 'none'") {
			t.Errorf("%s: content security policy %q", c.path, got)
		}
	}
}

// TestWatch: a demo's page is there when the reader is sent to it, with the controllers held up at the scenario; a
// second wish ends the first demo.
func TestWatch(t *testing.T) {
	base := started(t, Options{})
	var first string
	for _, scenario := range []string{"", "endpoints"} {
		answer, body := ask(t, "POST", base+"/watch", url.Values{"scenario": {scenario}}.Encode(), "Origin", base)
		page := answer.Header.Get("Location")
		if answer.StatusCode != http.StatusSeeOther || page == "" {
			t.Fatalf("scenario %q: %s: %s", scenario, answer.Status, body)
		}
		if answer, body = ask(t, "GET", page, ""); answer.StatusCode != 200 || !strings.Contains(body, "<title>") {
			t.Errorf("scenario %q: %s: %.200s", scenario, answer.Status, body)
		}
		if _, body = ask(t, "GET", page+"api/tap", ""); !strings.Contains(body, `"paused":true`) {
			t.Errorf("scenario %q: the controllers are not held up: %s", scenario, body)
		}
		if scenario == "" {
			first = page
		}
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	if answer, err := client.Get(first); err == nil {
		answer.Body.Close()
		t.Error("the first demo still runs")
	}
}

// TestOpen: the browser is given the server's address, and Run says if there is no browser.
func TestOpen(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the test has a browser for Linux only")
	}
	dir := t.TempDir()
	browser := []byte("#!/bin/sh\necho $1 >$0.url\nexit 3\n")
	if err := os.WriteFile(filepath.Join(dir, "xdg-open"), browser, 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir)
	ctx, stop := context.WithCancel(t.Context())
	told, out := io.Pipe()
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, Options{Address: "127.0.0.1:0", Open: true, Out: out}) }()
	lines := bufio.NewScanner(told)
	lines.Scan()
	base := regexp.MustCompile(`http://[^/]*/`).FindString(lines.Text())
	lines.Scan()
	if want := "No browser could be opened: exit status 3"; lines.Text() != want {
		t.Errorf("%q, want %q", lines.Text(), want)
	}
	if url, err := os.ReadFile(filepath.Join(dir, "xdg-open.url")); err != nil || string(url) != base+"\n" {
		t.Errorf("the browser opened %q, %v, want %s", url, err, base)
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// TestDir: with a folder, a page is what its file is now.
func TestDir(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("README.md", "# Top\n")
	write("docs/README.md", "# Docs\n")
	write("docs/book/README.md", "before\n")
	base := started(t, Options{Dir: dir})
	const link = "[x](../../exercises/07a-x/x.go)"
	for _, c := range []struct {
		text, learn, says string
		code              int
	}{
		{"before", "", "before", 200},
		{"after", "", "after", 200},
		{"[x](gone.md)", "", "there is no page docs/book/gone.md", 500},
		{link, "", `x.go">x</a>`, 200},
		{link, "{}", `x.go" title="not tried">x</a>`, 200},
		{link, `{"07a-x": "solved"}`, `x.go" title="solved">x</a>`, 200},
	} {
		write("docs/book/README.md", c.text+"\n")
		write("bin/learn.json", c.learn)
		answer, body := ask(t, "GET", base+"/docs/book/index.html", "")
		if answer.StatusCode != c.code || !strings.Contains(body, c.says) {
			t.Errorf("%s: %s: %s", c.text, answer.Status, body)
		}
	}
}

func TestOutput(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "book")
	var out strings.Builder
	if err := Run(t.Context(), Options{Address: DefaultAddress, Output: dir, Out: &out}); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "docs", "book", "index.html"))
	if err != nil || strings.Contains(string(text), watchPath) {
		t.Errorf("%v, or a button that nothing answers", err)
	}
	if !strings.Contains(out.String(), filepath.Join(dir, "index.html")) {
		t.Errorf("told %q", out.String())
	}

	// With the playground in the folder, the pages lead to it.
	if err := os.Mkdir(filepath.Join(dir, "try"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "try", "index.html"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := Run(t.Context(), Options{Address: DefaultAddress, Output: dir, Out: &out}); err != nil {
		t.Fatal(err)
	}
	text, err = os.ReadFile(filepath.Join(dir, "docs", "book", "11-deployment.html"))
	if err != nil || !strings.Contains(string(text), `method="get" action="../../try/index.html"`) {
		t.Errorf("%v, or no button that opens the playground", err)
	}
}
