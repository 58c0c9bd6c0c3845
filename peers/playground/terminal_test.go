// Package playground compares the terminal of the playground with kubectl.
package playground

import (
	"bytes"
	"context"
	"io"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/cmd/flyball/demo"
	"github.com/flyball-dev/flyball/playground/terminal"
)

// commands are run by both, in this order, each in a namespace of its own. Where the text has several lines that tell
// of progress, only the last one is compared.
var commands = []struct {
	line, manifest string
	progress       bool
}{
	{line: "create deployment web --image=nginx:1.28 --replicas=3"},
	{line: "rollout status deployment/web", progress: true},
	{line: "get deployments"},
	{line: "get deploy web -o wide"},
	{line: "get deploy/web -o name"},
	{line: "get rs,deploy"},
	{line: "get pods --show-labels"},
	{line: "get pods -l app=web -o wide --no-headers"},
	{line: "set image deployment/web nginx=nginx:1.29"},
	{line: "set image deployment/web nothing=nginx:1.29"},
	{line: "rollout status deployment web", progress: true},
	{line: "rollout history deployment/web"},
	{line: "rollout undo deployment/web"},
	{line: "rollout status deployment/web", progress: true},
	{line: "rollout undo deployment/web --to-revision=9"},
	{line: "rollout pause deployment/web"},
	{line: "rollout undo deployment/web"},
	{line: "rollout pause deployment/web"},
	{line: "rollout resume deployment/web"},
	{line: "rollout resume deployment/web"},
	{line: "rollout restart deployment/web"},
	{line: "rollout status deployment/web", progress: true},
	{line: "scale deployment/web --replicas=2"},
	{line: "scale deployment/web"},
	{line: "rollout status deployment/web", progress: true},
	{line: "apply -f -", manifest: two},
	{line: "apply -f -", manifest: two},
	{line: "apply -f -", manifest: strings.Replace(two, "b: c", "b: d", 1)},
	{line: "get deploy web -o yaml"},
	{line: "get deploy web -o json"},
	{line: "get cm,secret"},
	{line: "get secrets"},
	{line: "get pods,nodes nothing"},
	{line: "get nothing"},
	{line: "create deployment none --image=host:5000/nginx@sha256:0 --replicas=0"},
	{line: "create deployment none --image=nginx"},
	{line: "create deployment negative --image=nginx --replicas=-1"},
	{line: "get deploy none -o wide"},
	{line: "get deploy -l 'app in (none, nothing)' -o name"},
	{line: `get deploy -l "app=none"`},
	{line: "get deploy none -l app=none"},
	{line: "get deploy none -A"},
	{line: "get deploy/none pods/nothing"},
	{line: "get deploy none nothing -o yaml"},
	{line: "get pods a b -o name"},
	{line: "get deploy/"},
	{line: "get /none"},
	{line: "get deploy/none/x"},
	{line: "get pods,"},
	{line: "scale deployment/none --replicas=-1"},
	{line: "delete deploy/nothing deploy/none deploy/nobody"},
	{line: "delete deploy,cm -l app=none"},
	{line: "get pods nothing"},
	{line: "delete -f -", manifest: two},
	{line: "delete deployment web"},
	{line: "delete deployment web"},
	{line: "delete pods"},
	{line: "get deployments"},
}

const two = `
apiVersion: v1
kind: ConfigMap
metadata: {name: a}
data: {b: c}
---
apiVersion: v1
kind: Secret
metadata: {name: s}
data: {d: ZQ==}
`

// TestTerminal runs the commands of the terminal and those of kubectl on one API, and compares what they print.
func TestTerminal(t *testing.T) {
	build := exec.CommandContext(t.Context(), "go", "run", "./upstream/cmd/controlplane", "-build", "kubectl")
	build.Dir, build.Stderr = "..", t.Output()
	bin, err := build.Output()
	if err != nil {
		t.Fatal(err)
	}
	api := begin(t)
	ours, err := terminal.New(api, terminal.Options{})
	if err != nil {
		t.Fatal(err)
	}
	theirs := serve(t, api)
	kubectl := func(line, manifest string) string {
		c := exec.CommandContext(t.Context(), filepath.Join(strings.TrimSpace(string(bin)), "kubectl"),
			append(words(line), "--server="+theirs, "--cache-dir="+filepath.Join(t.TempDir(), "cache"))...)
		c.Env = []string{"HOME=" + t.TempDir()}
		c.Stdin = strings.NewReader(manifest)
		out, _ := c.CombinedOutput() // An error is in the text.
		return string(out)
	}
	for _, namespace := range []string{"ours", "theirs"} {
		if out := kubectl("create namespace "+namespace, ""); !strings.Contains(out, "created") {
			t.Fatal(out)
		}
	}
	for _, c := range commands {
		var got bytes.Buffer
		ours.Run(t.Context(), c.line+" -n ours", strings.NewReader(c.manifest), &got)
		want := kubectl(c.line+" -n theirs", c.manifest)
		texts := []string{plain(got.String()), plain(want)}
		if c.progress {
			for i, text := range texts {
				lines := strings.Split(strings.TrimSpace(text), "\n")
				texts[i] = lines[len(lines)-1]
			}
		}
		if diff := cmp.Diff(texts[1], texts[0]); diff != "" {
			t.Errorf("%s: kubectl (-), the terminal (+):\n%s", c.line, diff)
		}
	}
}

// words returns the words of a command line, as a shell reads it.
func words(line string) (words []string) {
	for i, part := range strings.FieldsFunc(line, func(r rune) bool { return r == '\'' || r == '"' }) {
		if i%2 == 1 { // It was in quotes.
			words = append(words, part)
		} else {
			words = append(words, strings.Fields(part)...)
		}
	}
	return words
}

// begin runs the cluster of the playground, and returns a configuration for clients of its API.
func begin(t *testing.T) *rest.Config {
	t.Helper()
	ctx, stop := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
	here, ended := make(chan demo.Here, 1), make(chan error, 1)
	go func() {
		ended <- demo.Run(ctx, demo.Options{
			Speed: 10, Timeout: time.Minute, NoStory: true, Out: io.Discard,
			Here: func(h demo.Here) { here <- h },
		})
	}()
	t.Cleanup(func() {
		stop()
		<-ended // It was stopped before its end, which may be an error.
	})
	select {
	case h := <-here:
		return h.API
	case err := <-ended:
		t.Fatal(err)
		return nil
	}
}

// serve serves an API on a socket until the test ends, and returns its address.
func serve(t *testing.T, api *rest.Config) string {
	t.Helper()
	transport, err := rest.TransportFor(api)
	if err != nil {
		t.Fatal(err)
	}
	to, err := url.Parse(api.Host)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(&httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(to) }, Transport: transport, FlushInterval: -1,
	})
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

// replacements make two texts alike that differ in the namespace, in names that are generated, and in times.
var replacements = []struct {
	from *regexp.Regexp
	to   string
}{
	{regexp.MustCompile(`\b(theirs|ours)\b`), "NAMESPACE"},
	{regexp.MustCompile(`web-[0-9a-z]{9,10}(-[0-9a-z]{5})?`), "web-HASH"},
	{regexp.MustCompile(`pod-template-hash=\S+`), "pod-template-hash=HASH"},
	{regexp.MustCompile(`10\.\d+\.\d+\.\d+ *`), "IP "},
	{regexp.MustCompile(`node-\d+`), "node-N"},
	{regexp.MustCompile(`\b\d+(ms|s)\b`), "AGE"},
	{regexp.MustCompile(`(uid|resourceVersion|creationTimestamp|last\w+Time|\S+/restartedAt)("?: )"?[-0-9a-zA-Z:]+"?`), "$1$2"},
}

func plain(text string) string {
	for _, r := range replacements {
		text = r.from.ReplaceAllString(text, r.to)
	}
	return text
}
