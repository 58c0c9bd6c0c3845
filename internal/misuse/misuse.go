// Package misuse detects arguments that a caller cannot have meant: nil inside an interface, and names that do not fit
// into logs, metrics or URLs.
package misuse

import (
	"fmt"
	"reflect"
)

// IsNil reports whether v is nil, or an interface that holds a nil pointer, function or channel. Its methods would
// panic far from the mistake. Nil maps and slices have useful methods, so they do not count.
func IsNil(v any) bool {
	if v == nil {
		return true
	}
	switch r := reflect.ValueOf(v); r.Kind() {
	case reflect.Pointer, reflect.Func, reflect.Chan:
		return r.IsNil()
	}
	return false
}

// Nil returns an error if v is nil. what describes v in the message.
func Nil(what string, v any) error {
	switch {
	case v == nil:
		return fmt.Errorf("%s is nil", what)
	case IsNil(v):
		return fmt.Errorf("%s is a nil %T", what, v)
	}
	return nil
}

// maxName is the maximum length of a name, so that it fits into a metric label.
const maxName = 253

// Name validates a name that appears in logs, metrics and paths such as /readyz/NAME. The error describes the mistake
// and the remedy.
func Name(name string) error {
	if name == "" {
		return fmt.Errorf("the name is empty; give one like %q", "greeter")
	}
	if len(name) > maxName {
		return fmt.Errorf("the name has %d characters; %d are allowed", len(name), maxName)
	}
	for i, c := range name {
		isAlnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		isInner := i > 0 && i < len(name)-1 && (c == '-' || c == '_' || c == '.' || c == '/' || c == ':')
		if !isAlnum && !isInner {
			return fmt.Errorf(
				"the name %q stands in logs, metrics and URLs: use letters and digits, and any of -_./: between them",
				name,
			)
		}
	}
	return nil
}
