// Package printable makes text that objects and servers have chosen safe to print on a terminal.
package printable

import "strings"

// Text replaces the control characters of s, which a terminal would obey, but for line feeds and tabs.
func Text(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
			return '\uFFFD'
		}
		return r
	}, s)
}

// Line is Text on one line: with spaces for line feeds and tabs.
func Line(s string) string {
	return strings.NewReplacer("\n", " ", "\t", " ").Replace(Text(s))
}
