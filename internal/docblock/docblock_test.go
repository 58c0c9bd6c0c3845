package docblock_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/flyball-dev/flyball/internal/docblock"
)

func TestBlock(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	page := "# Page\n\n<!-- made by make one -->\nold\n<!-- end of make one -->\n\n" +
		"<!-- made by make two -->\n<!-- end of make two -->\nEnd.\n"
	if err := os.WriteFile(file, []byte(page), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"new\n", "| newer |\n|---|"} { // The second replaces the first.
		if err := docblock.Write(file, "make one", text); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := docblock.Read(file, "make one"); err != nil || got != "| newer |\n|---|" {
		t.Errorf("the block reads %q, %v", got, err)
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	want := "# Page\n\n<!-- made by make one -->\n\n| newer |\n|---|\n\n<!-- end of make one -->\n\n" +
		"<!-- made by make two -->\n<!-- end of make two -->\nEnd.\n"
	if string(got) != want {
		t.Errorf("the page is\n%s\nwant\n%s", got, want)
	}
	if err := docblock.Write(file, "make three", ""); err == nil {
		t.Error("a block that is not there was written")
	}
}

func TestAnchor(t *testing.T) {
	for heading, want := range map[string]string{
		"Who may take the lease?": "who-may-take-the-lease", "410 Gone, or not": "410-gone-or-not",
		"processNextWorkItem": "processnextworkitem", "a_b – c-d": "a_b--c-d",
	} {
		if got := docblock.Anchor(heading); got != want {
			t.Errorf("the anchor of %q is %q, want %q", heading, got, want)
		}
	}
}
