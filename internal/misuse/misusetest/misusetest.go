// Package misusetest runs tables of mistaken calls, each of which must be rejected with a helpful message.
package misusetest

import (
	"strings"
	"testing"
)

// Call is a mistaken call.
type Call struct {
	// Of describes the call.
	Of string
	// Do makes the call.
	Do func() error
	// Says is a part of the error's text or, for a function without an error, of the panic's text. A runtime panic,
	// such as a nil dereference, never counts, because its text does not help.
	Says string
}

// Of returns a Call.
func Of(of string, do func() error, says string) Call { return Call{Of: of, Do: do, Says: says} }

// Constructs returns a Do for a function that returns no error.
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

// words returns the text of the error, or of a panic with a string.
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
