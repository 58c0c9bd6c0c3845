package printable

import "testing"

func TestText(t *testing.T) {
	const text = "a\tb\nc\r\x1b[2J\x7f\u0085\u00a0é\u202edcba\u202c\u2066\u200f\u2028"
	const rest = "\uFFFD\uFFFD[2J\uFFFD\uFFFD\u00a0é\uFFFDdcba\uFFFD\uFFFD\uFFFD\uFFFD"
	if got, want := Text(text), "a\tb\nc"+rest; got != want {
		t.Errorf("Text: %q, want %q", got, want)
	}
	if got, want := Line(text), "a b c"+rest; got != want {
		t.Errorf("Line: %q, want %q", got, want)
	}
}
