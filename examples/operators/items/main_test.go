package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// asCommand makes the test's binary the tool: its arguments are the tool's.
const asCommand = "ITEMS_TEST_AS_COMMAND"

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
		return
	}
	goleak.VerifyTestMain(m)
}

// command is the tool in a process of its own.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command(os.Args[0], args...)
	c.Env = append(os.Environ(), asCommand+"=1")
	return c
}

// shop is somebody who calls the tool, each time anew.
type shop struct {
	*testing.T
	store string
}

func newShop(t *testing.T) *shop { return &shop{T: t, store: filepath.Join(t.TempDir(), "store")} }

// call returns the exit code and what was printed.
func (s *shop) call(args ...string) (code int, out, errs string) {
	s.Helper()
	var stdout, stderr bytes.Buffer
	code = run(s.Context(), append(args, "--store", s.store), strings.NewReader(""), &stdout, &stderr)
	return code, stdout.String(), stderr.String()
}

// ok is a call that does well and prints all of these. Runs of spaces count as one.
func (s *shop) ok(args []string, want ...string) (out string) {
	s.Helper()
	code, out, errs := s.call(args...)
	s.says(args, code, 0, out+errs, want...)
	return out
}

var spaces = regexp.MustCompile(` +`)

func (s *shop) says(args []string, code, wanted int, text string, want ...string) {
	s.Helper()
	plain := spaces.ReplaceAllString(text, " ")
	if code != wanted {
		s.Errorf("items %q: exit code %d, want %d:\n%s", args, code, wanted, text)
	}
	for _, w := range want {
		if !strings.Contains(plain, w) {
			s.Errorf("items %q does not say %q:\n%s", args, w, text)
		}
	}
}

func words(line string) []string { return strings.Fields(line) }

// TestTool: each call is a process of its own, as far as the store is concerned, and goes on where the last one
// stopped.
func TestTool(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.ok(words("run"), "Nothing changed.\n0 reconciles")
	s.ok(words("apply -f stock.yaml"),
		"hammer TL-0001 A1 Shelved 12 222.00 Ready",
		"red-paint - - Registered 8 79.20 Stalled (there is no category paint)",
		// 719h59m59.9s, or 720h0m0s on a quick day
		"Created 2 categories, 4 configmaps, 5 items", "0 of them failed", "Due later: item default/m4-20 in 7")
	s.ok(words("apply -f stock.yaml"), "Nothing changed.", "Due later: item default/m4-20")
	s.ok(words("run"), "Nothing changed.")
	paint := filepath.Join(t.TempDir(), "paint.yaml")
	if err := os.WriteFile(paint,
		[]byte(
			"{apiVersion: stock.flyball.dev/v1, kind: Category, metadata: {name: paint}, spec: {prefix: PT, limit: "+
				"10}}",
		), 0o600); err != nil {
		t.Fatal(err)
	}
	s.ok(words("apply -f "+paint), "red-paint PT-0001 - Shelved 8")
	s.ok(words("count red-paint 20"), "paint PT - 1 20 198.00 Ready, OverLimit (20 pieces, and the shelf holds 10)",
		"Updated 1 categories, ")
	s.ok(words("delete category paint"), "Reconciling (being deleted, but 1 items refer to it)")
	out := s.ok(words("delete item red-paint"), "deleted 1 categories, 1 configmaps, 1 items")
	if strings.Contains(out, "paint") {
		t.Errorf("there is still paint:\n%s", out)
	}
	s.ok(words("run"), "Nothing changed.")
	if out := s.ok(words("list -o json"), `"sku": "SC-0001"`); strings.Contains(out, "reconciles") {
		t.Errorf("list did something:\n%s", out)
	}
	objects, err := openObjects(context.Background(), s.store) // a second process
	if err != nil {
		t.Fatal(err)
	}
	defer objects.Close()
	code, out, errs := s.call("run")
	s.says(words("run beside another"), code, 1, out+errs, "items: --store "+s.store, "in use")
}

// TestTenants: two in one store have things of the same names, and neither sees, counts or deletes the other's.
func TestTenants(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.ok(words("apply -f stock.yaml --tenant north"))
	s.ok(words("list --tenant nort"), "ITEM SKU SHELF PHASE PIECES VALUE STATE\n")
	s.ok(words("apply -f stock.yaml --tenant south"), "Created 2 categories, 4 configmaps, 5 items")
	s.ok(words("count saw 1 --tenant south"), "saw TL-0002 A1 Shelved 1 ")
	s.ok(words("delete item hammer --tenant south"), "deleted 1 configmaps, 1 items")
	out := s.ok(words("run --tenant north"), "Nothing changed.", "hammer TL-0001 A1 Shelved 12 ",
		"saw TL-0002 A1 Shelved 5 ")
	if strings.Count(out, "Shelved") != 4 {
		t.Errorf("north has %s", out)
	}
	s.ok(words("tenants"), "nort 0 0\nnorth 2 5\nsouth 2 4\n")
	code, out, errs := s.call("delete", "item", "hammer", "--tenant", "south")
	s.says(words("delete twice"), code, 1, out+errs, `tenant south has no item "hammer"`)
	for _, hostile := range []string{"", "a/b", "../a", "A"} {
		code, out, errs = s.call("list", "--tenant", hostile)
		s.says([]string{"--tenant", hostile}, code, 2, out+errs, "items: --tenant: ")
	}
}

// TestFailures: what fails is tried again as often as was said; the exit code, the summary and the next call tell.
func TestFailures(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.ok(words("apply -f stock.yaml"))
	s.putForeignLabel("saw2")
	saw := filepath.Join(t.TempDir(), "saw.yaml")
	if err := os.WriteFile(saw,
		[]byte(
			"{apiVersion: stock.flyball.dev/v1, kind: Item, metadata: {name: saw2}, spec: {category: tools, quantity: "+
				"1}}",
		), 0o600); err != nil {
		t.Fatal(err)
	}
	code, out, errs := s.call("apply", "-f", saw, "--retries", "2")
	s.says(words("apply"), code, 1, out+errs, "saw2 TL-0003 A1 Numbered 1", "3 of them failed",
		"hammer TL-0001 A1 Shelved",
		"Failed: item default/saw2, 3 times: label: saw2-label: a ConfigMap that is not the item's has the name",
		"items: 1 failed; items run tries again")
	code, out, errs = s.call("run", "--retries", "-1")
	s.says(words("run"), code, 1, out+errs, "Nothing changed.", "Failed: item default/saw2, ")
}

// TestDueLater: a count that comes due is listed, or waited for; a run whose time is over says what there is.
func TestDueLater(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	file := filepath.Join(t.TempDir(), "short.yaml")
	text := `{apiVersion: stock.flyball.dev/v1, kind: Category, metadata: {name: tools}, spec: {prefix: TL}}
---
{apiVersion: stock.flyball.dev/v1, kind: Item, metadata: {name: milk}, spec: {category: tools, quantity: 1, recountEvery: 8s}}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s.ok(words("apply --wait -f "+file), "Ready, RecountDue (the last count is older than 8s)")
	s.ok(words("run"), "Nothing changed.")
	s.ok(words("count milk 3"), "Due later: item default/milk in ")
	s.ok(words("apply -f stock.yaml"), "Due later: item default/m4-20 in ") // a month
	code, out, errs := s.call("run", "--wait", "--timeout", "4s")
	s.says(words("--wait"), code, 1, out+errs, "items: --timeout: 4s are over, ", " left; items run goes on")
	code, out, errs = s.call("apply", "-f", "stock.yaml", "--timeout", "1ns")
	s.says(words("apply"), code, 1, out+errs, "items: --timeout: 1ns are over: ")
}

// TestWrongCommandLines: exit code 2, a line that names what is wrong, and no store is made.
func TestWrongCommandLines(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	for _, c := range []struct {
		line string
		code int
		says string
	}{
		{"nonsense", 2, `unknown command "nonsense"`},
		{"apply", 2, "-f is missing"},
		{"apply -f none.yaml", 1, "none.yaml: no such file"},
		{"apply -f .", 1, "no objects in ."},
		{"apply -f stock.yaml -o xml", 2, "--output"},
		{"apply -f stock.yaml --timeout 0s", 2, "--timeout"},
		{"run --workers 0", 2, "--workers"},
		{"run --print-delay -1s", 2, "--print-delay"},
		{"run fast", 2, `unexpected argument "fast"`},
		{"count hammer", 2, "QUANTITY is missing"},
		{"count hammer some", 2, `QUANTITY is "some"`},
		{"delete shelf x", 2, `"shelf" can not be deleted`},
		{"manager --workers 0", 2, "--workers"},
		{"manager --kubeconfig no-such-file", 2, "no-such-file"},
		{"list -o yaml", 2, `--output "yaml": it must be table or json`},
		{"manager --port 123456", 2, "port"},
	} {
		var out, errs bytes.Buffer
		code := run(t.Context(), words(c.line), strings.NewReader(""), &out, &errs)
		if code != c.code || !strings.Contains(errs.String(), c.says) || strings.Count(errs.String(), "\n") != 1 {
			t.Errorf("items %s: exit code %d, want %d: %q, want %q", c.line, code, c.code, errs.String(), c.says)
		}
	}
	for text, says := range map[string]string{
		"kind: [": "document 1",
		"{apiVersion: v1, kind: Pod, metadata: {name: " +
			"x}}": "v1 Pod is none of the tool's",
		"{apiVersion: stock.flyball.dev/v1, kind: Item, metadata: " +
			"{}}": "without metadata.name",
		"{apiVersion: stock.flyball.dev/v1, kind: Item, metadata: {name: x, namespace: " +
			"shop}}": "is in namespace shop",
		"{apiVersion: stock.flyball.dev/v1, kind: Item, metadata: {name: x}, spec: {category: " +
			"c}}": "spec.quantity",
		"{apiVersion: stock.flyball.dev/v1, kind: Category, metadata: {name: x}, spec: {prefix: " +
			"tools}}": "spec.prefix",
		"{apiVersion: stock.flyball.dev/v1, kind: Category, metadata: {name: x}, spec: {prefix: AB, colour: " +
			"red}}": "colour",
	} {
		var out, errs bytes.Buffer
		code := run(t.Context(), []string{"apply", "-f", "-", "--store", ""}, strings.NewReader(text), &out, &errs)
		if code != 1 || !strings.Contains(errs.String(), says) {
			t.Errorf("%s: exit code %d, %q, want %q", text, code, errs.String(), says)
		}
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 0 {
		t.Errorf("something was made: %v, %v", entries, err)
	}
}
