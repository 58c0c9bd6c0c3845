package printable

import "testing"

func TestText(t *testing.T) {
	const text = "a\tb\nc\r\x1b[2J\x7f\u0085\u00a0é"
	if got, want := Text(text), "a\tb\nc\uFFFD\uFFFD[2J\uFFFD\uFFFD\u00a0é"; got != want {
		t.Errorf("Text: %q, want %q", got, want)
	}
	if got, want := Line(text), "a b c\uFFFD\uFFFD[2J\uFFFD\uFFFD\u00a0é"; got != want {
		t.Errorf("Line: %q, want %q", got, want)
	}
}
