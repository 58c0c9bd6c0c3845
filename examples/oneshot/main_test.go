package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"
)

// TestOneshot: each call is a process of its own, as far as the tool is concerned.
func TestOneshot(t *testing.T) {
	defer goleak.VerifyNone(t)
	store, folder := filepath.Join(t.TempDir(), "store"), t.TempDir()
	file := filepath.Join(folder, "a.txt")
	put := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	call := func(args ...string) (string, error) {
		var out bytes.Buffer
		err := run(t.Context(), append([]string{"-store", store}, args...), &out)
		return out.String(), err
	}
	expect := func(out string, err error, want ...string) {
		t.Helper()
		if err != nil {
			t.Error(err)
		}
		for _, w := range want {
			if !strings.Contains(out, w) {
				t.Errorf("there is no %q in\n%s", w, out)
			}
		}
	}
	put("1")
	out, err := call("add", "mine", folder)
	expect(out, err, "mine  1      ", "Compared  false", "0 failed")
	out, err = call("check")
	expect(out, err, "  2      Compared  false")
	put("2")
	out, err = call("check")
	expect(out, err, "  3      Compared  true")
	if out, err = call("add", "none", filepath.Join(folder, "none")); err == nil ||
		!strings.Contains(err.Error(), "folder default/none: ") || !strings.Contains(out, "1 failed") {
		t.Errorf("a folder that does not exist: %v\n%s", err, out)
	}
	if err := os.Mkdir(filepath.Join(folder, "none"), 0o700); err != nil {
		t.Fatal(err)
	}
	out, err = call("check") // and what failed is taken up again
	expect(out, err, "none  0 ", "0 failed")
	if _, err := call("nonsense"); err == nil || !strings.Contains(err.Error(), "usage") {
		t.Errorf("nonsense: %v", err)
	}
}
