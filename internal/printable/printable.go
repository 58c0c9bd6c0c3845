// Package printable makes text that objects and servers have chosen safe to print on a terminal.
package printable

import (
	"strings"
	"unicode"
)

// Text replaces the control characters of s, which a terminal would obey, but for line feeds and tabs. It also replaces
// those that change the direction of the text, or end a line: with them, a name can look like another one.
func Text(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || r == '\u2028' || r == '\u2029' ||
			unicode.Is(unicode.Bidi_Control, r) {
			return '\uFFFD'
		}
		return r
	}, s)
}

// Line is Text on one line: with spaces for line feeds and tabs.
func Line(s string) string {
	return strings.NewReplacer("\n", " ", "\t", " ").Replace(Text(s))
}
