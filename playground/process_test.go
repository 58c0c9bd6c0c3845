package main

import (
	"bufio"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"
)

// begin runs the program without a scenario until the test ends, and returns its address. It runs as in the browser,
// except that a socket takes the place of the messages.
func begin(t *testing.T) (address string) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	served, ended := make(chan *httptest.Server, 1), make(chan error, 1)
	go func() {
		ended <- run(ctx, "", func(h http.Handler) {
			served <- httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				h.ServeHTTP(flusher{w}, r)
			}))
		})
	}()
	select {
	case s := <-served:
		t.Cleanup(func() {
			stop()
			s.CloseClientConnections()
			s.Close()
			<-ended // It was stopped before its end, which may be an error.
		})
		return s.URL
	case err := <-ended:
		t.Fatal(err)
		return ""
	}
}

// flusher sends each write at once, as the bridge does.
type flusher struct{ http.ResponseWriter }

func (f flusher) Write(b []byte) (int, error) {
	n, err := f.ResponseWriter.Write(b)
	f.Flush()
	return n, err
}

func (f flusher) Flush() { f.ResponseWriter.(http.Flusher).Flush() }

// ask sends a request, and returns the answer.
func ask(t *testing.T, address, body string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// command runs a command of the terminal.
func command(t *testing.T, address, line, manifest string) string {
	t.Helper()
	return ask(t, address+"/command?line="+url.QueryEscape(line), manifest)
}

// TestProcess uses the program as the page does: the terminal, a controller of one's own, and its log.
func TestProcess(t *testing.T) {
	address := begin(t)
	for _, c := range []struct{ line, manifest, says string }{
		{"create deployment web --image=nginx:1.28 --replicas=2", "", "deployment.apps/web created\n"},
		{"rollout status deployment/web", "", "deployment \"web\" successfully rolled out\n"},
		{"get deploy web", "", "NAME   READY   UP-TO-DATE   AVAILABLE   AGE\nweb    2/2     2            2           "},
		{"get deploy/web -o name", "", "deployment.apps/web\n"},
		{"get deploy,rs", "", "replicaset.apps/web-"},
		{"set image deploy/web nginx=nginx:1.29", "", "deployment.apps/web image updated\n"},
		{"set image deploy/web x=y", "", "error: unable to find container named \"x\"\n"},
		{"rollout status deploy web", "", "successfully rolled out\n"},
		{
			"rollout history deploy/web", "",
			"deployment.apps/web \nREVISION  CHANGE-CAUSE\n1         <none>\n2         <none>\n",
		},
		{"rollout undo deploy/web", "", "deployment.apps/web rolled back\n"},
		{"scale deploy/web --replicas=3", "", "deployment.apps/web scaled\n"},
		{"describe deploy web", "", "Scaled up replica set web-"},
		{"create deployment none --image=nginx --replicas=0", "", "deployment.apps/none created\n"},
		{"get deploy none --no-headers", "", "none   0/0   "},
		{"get deploy -l 'app in (none, x)' -o name", "", "deployment.apps/none\n"},
		{"delete deploy none -l app=web", "", "error: name cannot be provided when a selector is specified\n"},
		{"get pods x", "", "Error from server (NotFound): pods \"x\" not found\n"},
		{"get x", "", "error: the server doesn't have a resource type \"x\"\n"},
		{"get secrets", "", "No resources found in default namespace.\n"},
		{"apply -f -", "", "error: no objects passed"},
		{
			"apply -f -", `{apiVersion: v1, kind: ConfigMap, metadata: {name: a}, data: {b: "\e[31m"}}`,
			"configmap/a created\n",
		},
		{"get cm a -o yaml", "", "data:\n  b: \"\\e[31m\"\n"},
		{"get -A cm", "", "NAMESPACE   NAME   DATA   AGE\ndefault     a      1      "},
		{"delete cm a", "", "configmap \"a\" deleted from default namespace\n"},
		{"help", "", "rollout status"},
		{"rm", "", "error: unknown command \"rm\""},
	} {
		if got := command(t, address, c.line, c.manifest); !strings.Contains(got, c.says) {
			t.Errorf("%s: got\n%s\nwant\n%s", c.line, got, c.says)
		}
	}

	source, err := os.ReadFile("page/example.star")
	if err != nil {
		t.Fatal(err)
	}
	if got := ask(t, address+"/controller", string(source)); got != "" {
		t.Fatal(got)
	}
	for end := time.Now().Add(time.Minute); ; {
		got := command(t, address, "get cm web-note -o yaml", "")
		if strings.Contains(got, "  images: nginx:1.28\n  replicas: \"3\"\n") {
			break
		}
		if time.Now().After(end) {
			t.Fatal(got)
		}
	}
	if got := command(t, address, "logs controller", ""); strings.Count(got, "\n") == 0 {
		t.Error("nothing is in the log")
	}
	if got := ask(t, address+"/controller", "def reconcile(a, b):\n  x"); got != "line 2: undefined: x\n" {
		t.Errorf("got %q", got)
	}
	for path, most := range map[string]int{"/controller": mostScript, "/command?line=apply+-f+-": mostManifest} {
		if got := ask(t, address+path, strings.Repeat("#", most+1)); !strings.Contains(got, "too large") {
			t.Errorf("%s with too much: got %q", path, got)
		}
	}
	unknown := `watches = "v1/Nothing"` + "\ndef reconcile(a, b):\n  pass"
	if got := ask(t, address+"/controller", unknown); !strings.Contains(got, "Nothing") {
		t.Errorf("got %q", got)
	}
}

// TestPage runs the commands of docs/playground.md, and compares what they print. On the page, … stands for any text.
func TestPage(t *testing.T) {
	page, err := os.ReadFile("../docs/playground.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "```yaml\n")
	manifest, text, _ := strings.Cut(text, "```\n")
	_, text, _ = strings.Cut(text, "```console\n")
	text, _, _ = strings.Cut(text, "\n```\n")
	steps := strings.Split("\n"+text, "\n$ ")[1:]
	if len(steps) != 12 {
		t.Errorf("the page has %d commands", len(steps))
	}
	address := begin(t)
	early := regexp.MustCompile("^(get|describe|rollout (history|undo)|logs)") // These may come too early.
	for _, step := range steps {
		line, want, _ := strings.Cut(step, "\n")
		pattern := regexp.MustCompile("(?s)^" + strings.ReplaceAll(regexp.QuoteMeta(want), "…", ".*") + "$")
		for end := time.Now().Add(time.Minute); ; {
			got := command(t, address, line, manifest)
			if pattern.MatchString(strings.TrimSpace(strings.ReplaceAll(got, " \n", "\n"))) {
				break
			}
			if !early.MatchString(line) || time.Now().After(end) {
				t.Fatalf("%s: got\n%s\nand the page says\n%s", line, got, want)
			}
		}
	}
}

// TestLoop: a script that does not end is stopped, and the log says where.
func TestLoop(t *testing.T) {
	address := begin(t)
	source := "watches = \"v1/ConfigMap\"\ndef reconcile(a, b):\n  for i in range(1000000):\n    pass\n"
	if got := ask(t, address+"/controller", source); got != "" {
		t.Fatal(got)
	}
	command(t, address, "apply -f -", "{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, address+"/command?line=logs+-f+stopped", nil)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	line, err := bufio.NewReader(answer.Body).ReadString('\n')
	if err != nil || !strings.Contains(line, "line 3: stopped after 1000000 steps: it must come to an end") {
		t.Errorf("%q, %v", line, err)
	}
}
