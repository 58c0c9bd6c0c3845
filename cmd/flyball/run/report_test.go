package run

import (
	"errors"
	"strings"
	"testing"
	"unicode"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	flyball "github.com/flyball-dev/flyball/manager"
)

// TestReportIsHarmless: what objects and errors bring along can neither give orders to a terminal, nor turn the text
// around, nor begin a line or a column of its own in the table.
func TestReportIsHarmless(t *testing.T) {
	const evil = "x\x1b]0;owned\a\u202egnp.exe\u2066\ty\nNAMESPACE"
	u := &unstructured.Unstructured{Object: map[string]any{
		"kind": evil, "metadata": map[string]any{"name": evil, "namespace": evil},
		"status": map[string]any{"conditions": []any{
			map[string]any{"type": evil, "status": "False", "reason": evil},
		}},
	}}
	r := report{
		objects: []applied{{Unstructured: u, change: "created"}}, changes: "created 1 " + evil, skipped: []string{evil},
		ran: true, summary: flyball.Summary{Failed: []flyball.Key{{Controller: "c", Key: evil, Err: errors.New(evil)}}},
	}
	var table, summary strings.Builder
	if err := r.write(Options{Out: &table, Summary: &summary}); err != nil {
		t.Fatal(err)
	}
	if lines := strings.Count(table.String(), "\n"); lines != 2 {
		t.Errorf("the table has %d lines, want 2: %q", lines, table.String())
	}
	for _, r := range table.String() + summary.String() {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f || unicode.Is(unicode.Bidi_Control, r) {
			t.Fatalf("%q in %q, %q", r, table.String(), summary.String())
		}
	}
}
