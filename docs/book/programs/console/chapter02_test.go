package console

import (
	"regexp"
	"strings"
	"testing"

	"github.com/flyball-dev/flyball/cmd/flyball/serve"
)

// TestChapter02Console types what the chapter says.
func TestChapter02Console(t *testing.T) {
	x := Open(t, serve.Options{})
	console := block("02-list-and-watch")
	version := ""
	t.Run("list", func(t *testing.T) {
		text := x.Run(t, setUp,
			`api POST $pods -d '{"metadata": {"name": "web-1"},
    "spec": {"containers": [{"name": "c", "image": "nginx:1.28"}]}}' >/dev/null`,
			`api GET $pods | grep -m 1 resourceVersion`)
		if m := regexp.MustCompile(`"resourceVersion": "(\d+)"`).FindStringSubmatch(text); m != nil {
			version = m[1]
		} else {
			t.Fatalf("the list has no version:\n%s", text)
		}
		console(t, text)
	})
	watch := `api GET "$pods?watch=1&timeoutSeconds=1&resourceVersion=` + version + `"`
	t.Run("watch", func(t *testing.T) {
		console(t, x.Run(t, setUp,
			`api POST $pods -d '{"metadata": {"name": "web-2"},
    "spec": {"containers": [{"name": "c", "image": "nginx:1.28"}]}}' >/dev/null`,
			`api DELETE $pods/web-1 >/dev/null`,
			watch+` | cut -c 1-110`))
	})
	t.Run("short", func(t *testing.T) {
		text := x.Run(t, setUp, watch+` | short`)
		if !strings.Contains(text, "ADDED web-2") || !strings.Contains(text, "DELETED web-1") {
			t.Errorf("the watch misses something:\n%s", text)
		}
		console(t, text)
	})
}
