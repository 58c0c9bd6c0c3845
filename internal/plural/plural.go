// Package plural guesses the names of resources.
package plural

import (
	"slices"
	"strings"
)

// Of returns the English plural of a kind, in lower case. It is what most authors of a kind call its resource; only
// discovery knows what this one did.
func Of(kind string) string {
	word := strings.ToLower(kind)
	ends := func(endings ...string) bool {
		return slices.ContainsFunc(endings, func(e string) bool { return strings.HasSuffix(word, e) })
	}
	switch {
	case word == "endpoints":
		return word
	case ends("s", "x", "z", "ch", "sh"):
		return word + "es"
	case ends("y") && !ends("ay", "ey", "iy", "oy", "uy"):
		return strings.TrimSuffix(word, "y") + "ies"
	default:
		return word + "s"
	}
}
