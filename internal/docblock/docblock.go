// Package docblock writes and reads the parts of documents that programs make, and names the places that links lead to.
package docblock

import (
	"fmt"
	"os"
	"strings"
	"unicode"
)

// Write replaces the block of a name in a Markdown file. A block stands between two comments:
//
//	<!-- made by NAME -->
//	<!-- end of NAME -->
func Write(file, name, text string) error {
	before, _, after, err := cut(file, name)
	if err != nil {
		return err
	}
	info, err := os.Stat(file)
	if err != nil {
		return err
	}
	return os.WriteFile(file, []byte(before+"\n"+strings.TrimSpace(text)+"\n\n"+after), info.Mode())
}

// Read returns the text of the block, without empty lines around it.
func Read(file, name string) (string, error) {
	_, text, _, err := cut(file, name)
	return strings.TrimSpace(text), err
}

// cut returns what stands before the block's text, the text, and what follows. The comments are not part of the text.
func cut(file, name string) (before, text, after string, err error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", "", "", err
	}
	first, last := "<!-- made by "+name+" -->\n", "<!-- end of "+name+" -->\n"
	before, rest, found := strings.Cut(string(content), first)
	text, after, ended := strings.Cut(rest, last)
	if !found || !ended {
		return "", "", "", fmt.Errorf("%s has no block between %q and %q",
			file, strings.TrimSpace(first), strings.TrimSpace(last))
	}
	return before + first, text, last + after, nil
}

// Anchor returns the name that forges give to a heading: in small letters, with hyphens for spaces, and without signs.
func Anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}
