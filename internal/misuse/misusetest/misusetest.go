// Package misusetest runs tables of calls that a newcomer gets wrong, each of which must be refused in words.
package misusetest

import (
	"strings"
	"testing"
)

// Call is a wrong call.
type Call struct {
	// Of is what is called, and how.
	Of string
	// Do does it.
	Do func() error
	// Says is part of what the error says; or, where there is no error to return, the panic. A nil pointer that somebody ran into says
	// nothing that helps, so it never counts.
	Says string
}

// Of is a Call.
func Of(of string, do func() error, says string) Call { return Call{Of: of, Do: do, Says: says} }

// Constructs is a Do of a function that has no error to return.
func Constructs[T any](construct func() T) func() error {
	return func() error { construct(); return nil }
}

// Run makes the calls.
func Run(t *testing.T, calls []Call) {
	t.Helper()
	for _, c := range calls {
		if said := words(c.Do); !strings.Contains(said, c.Says) || said == "" {
			t.Errorf("%s: said %q, want something with %q", c.Of, said, c.Says)
		}
	}
}

// words are those of the error, or of a panic with a string.
func words(do func() error) (said string) {
	defer func() {
		if value := recover(); value != nil {
			text, isText := value.(string)
			if said = text; !isText {
				said = ""
			}
		}
	}()
	if err := do(); err != nil {
		return err.Error()
	}
	return ""
}
