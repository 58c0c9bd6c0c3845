package main

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
)

// TestStory tells the story in virtual time.
func TestStory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		if err := tell(t.Context(), &out); err != nil {
			t.Fatalf("%v\n%s", err, &out)
		}
		lines := strings.Split(strings.TrimSpace(out.String()), "\n")
		if last := lines[len(lines)-1]; !strings.HasPrefix(last, "Shown in ") || !strings.Contains(last, ": 13 things") {
			t.Errorf("it ends with %q", last)
		}
	})
}

func TestFlags(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"nonsense", `unknown argument "nonsense"`},
		{"--port=99999", "--port 99999"},
		{"--poll=x", "invalid argument"},
		{"--control-plane-kubeconfig=/does/not/exist", "--control-plane-kubeconfig: "},
		{"--kubeconfig=/does/not/exist", "/does/not/exist"},
		{"--master=http://127.0.0.1:1 --leader-elect=false --port=0 --control-plane-url={{", "unclosed action"},
		{"--master=http://127.0.0.1:1 --leader-elect=false --port=0 --project-selector=!!", "LabelSelector"},
	} {
		var stderr bytes.Buffer
		if err := run(t.Context(), strings.Fields(c.args), &stderr, &stderr); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v", c.args, err)
		}
	}
}
