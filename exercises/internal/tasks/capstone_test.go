package tasks

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestCapstone checks that simtest finds nothing in the controller of chapter 13 if all parts are solutions, and that
// it finds parts that are wrong.
func TestCapstone(t *testing.T) {
	parts, err := Parts(t.Context(), dir, loadAll(t), true)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range parts {
		if p.Passed {
			t.Fatalf("%s passes for the reader's, and is not written", p.Task.Name)
		}
	}
	right, err := Overlay(dir, parts)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ name, file, from, to, want string }{
		{"the solutions", "", "", "", ""},
		{
			"the loop gives up a key that failed", "08a-loop/loop.go", "l.Queue.AddRateLimited(key)",
			"l.Queue.Forget(key)", "simtest: same end",
		},
		{
			"a watch does not begin at the position", "03a-reflector/reflector.go", "Watch(ctx, r.position,",
			"Watch(ctx, kube.AnyAge,", "when a watch ends, the program must list again",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			overlay := filepath.Join(t.TempDir(), "overlay.json")
			text := right
			if c.file != "" {
				solution := absolute(t, "_solutions", c.file)
				code, err := os.ReadFile(solution)
				if err != nil || !bytes.Contains(code, []byte(c.from)) {
					t.Fatalf("%s has no %q: %v", c.file, c.from, err)
				}
				wrong := filepath.Join(t.TempDir(), "wrong.go")
				changed := bytes.Replace(code, []byte(c.from), []byte(c.to), 1)
				if err := os.WriteFile(wrong, changed, 0o600); err != nil {
					t.Fatal(err)
				}
				text = bytes.Replace(text, []byte(`"`+solution+`"`), []byte(`"`+wrong+`"`), 1)
			}
			if err := os.WriteFile(overlay, text, 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := exec.CommandContext(t.Context(), "go", "test", "-vet=off", "-overlay", overlay, ".")
			cmd.Dir = filepath.Join(dir, "13-capstone")
			out, err := cmd.CombinedOutput()
			if (err == nil) != (c.want == "") || !strings.Contains(string(out), c.want) {
				t.Errorf("the error is %v, want %q in\n%s", err, c.want, out)
			}
		})
	}
}
