// Package misuse finds what a caller cannot have meant: nil inside an interface, and names that no log, metric or URL can carry.
package misuse

import (
	"fmt"
	"reflect"
)

// IsNil reports whether v is nil, or an interface that holds a nil pointer, function or channel: its methods would panic far from the
// mistake. A nil map or slice has useful methods, so it does not count.
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

// Nil is an error that says that what, which is v, is nil; nil if it is not.
func Nil(what string, v any) error {
	switch {
	case v == nil:
		return fmt.Errorf("%s is nil", what)
	case IsNil(v):
		return fmt.Errorf("%s is a nil %T", what, v)
	}
	return nil
}

// maxName is the longest name that a label of a metric should carry.
const maxName = 253

// Name checks the name of something that logs, metrics and paths such as /readyz/NAME show. Errors: what is wrong, and what would be
// right, without the name.
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
			return fmt.Errorf("the name %q stands in logs, metrics and URLs: use letters and digits, and any of -_./: between them", name)
		}
	}
	return nil
}
