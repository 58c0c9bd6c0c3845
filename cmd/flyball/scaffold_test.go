package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestScaffold: a project and a kind by the command line, and what it refuses before it writes anything.
func TestScaffold(t *testing.T) {
	source, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	for _, c := range []struct {
		line string
		code int
		want string
	}{
		{"init", 2, "init: --module is needed"},
		{"init --module guestbook", 2, "--domain is needed"},
		{"init --module example.com/guestbook extra", 2, `unexpected argument "extra"`},
		{"create", 2, "create what"},
		{"create thing", 2, `unknown command create "thing"`},
		{"create api --kind book", 2, "are needed"},
		{"create api --group webapp --version v1 --kind book", 2, `--kind "book"`},
		{"create api --group webapp --version v1 --kind Book", 1, "has no go.mod"},
		{"init --repo example.com/guestbook --fetch-deps=false --flyball-source=" + source, 0, ""},
		{"init --repo example.com/guestbook --flyball-source=" + source, 1, "is a project already"},
		{"create api --group webapp --version v1 --kind Book --fetch-deps=false", 0, ""},
		{"create api --group webapp --version v1 --kind Book --fetch-deps=false", 1, "exists already"},
		{"create webhook --group webapp --version v1 --kind Book", 2, "--defaulting or --programmatic-validation"},
		{"create webhook --group webapp --version v1 --kind Book --defaulting --fetch-deps=false", 0, ""},
		{"migrate --flyball-source=" + source, 1, "there is nothing to migrate"},
	} {
		before, _ := os.ReadDir(".")
		code, _, errs := flyball(t.Context(), strings.Fields(c.line)...)
		if code != c.code || !strings.Contains(errs, c.want) {
			t.Errorf("%s: exit code %d, %s", c.line, code, errs)
		}
		if after, _ := os.ReadDir("."); code != 0 && len(after) != len(before) {
			t.Errorf("%s: it failed, and wrote something", c.line)
		}
	}
	t.Setenv("PATH", "")
	code, _, errs := flyball(t.Context(), "create", "api", "--group=webapp", "--version=v1", "--kind=Page")
	if code != 1 || !strings.Contains(errs, "there is no go in the PATH") {
		t.Errorf("without Go: exit code %d, %s", code, errs)
	}
	if _, err := os.Stat("api/v1/page_types.go"); err == nil {
		t.Error("without Go, it wrote something")
	}
}
