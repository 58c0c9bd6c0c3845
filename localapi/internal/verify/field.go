package verify

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Field is a field of an object, and the list of the object's errors. The zero Field is not valid; [Errors] makes the
// first one.
//
// The names in the methods are those of fields below this one, like "spec.replicas". The empty name is the field
// itself.
//
// Concurrency: one goroutine verifies an object.
type Field struct {
	path *field.Path // nil for the whole object
	errs *field.ErrorList
}

// Errors returns what the rules report of the field at a path. A nil path is the whole object.
func Errors(path *field.Path, rules func(Field)) (errs field.ErrorList) {
	rules(Field{path: path, errs: &errs})
	return errs
}

// Path returns the path of a field.
func (f Field) Path(name string) *field.Path {
	if name == "" {
		return f.path
	}
	return f.path.Child(name)
}

// Child returns a field below f.
func (f Field) Child(name string) Field { return Field{f.path.Child(name), f.errs} }

// Index returns an item of f, which is a list.
func (f Field) Index(i int) Field { return Field{f.path.Index(i), f.errs} }

// Key returns an item of f, which is a map.
func (f Field) Key(key string) Field { return Field{f.path.Key(key), f.errs} }

// Add adds errors that something else found.
func (f Field) Add(errs ...*field.Error) { *f.errs = append(*f.errs, errs...) }

// Failed reports whether the object has an error so far.
func (f Field) Failed() bool { return len(*f.errs) > 0 }

// Passes runs rules and reports whether they found no error.
func (f Field) Passes(rules func(Field)) bool {
	before := len(*f.errs)
	rules(f)
	return len(*f.errs) == before
}

// Require reports a field that is missing, unless ok.
func (f Field) Require(name string, ok bool, detail string) {
	if !ok {
		f.Add(field.Required(f.Path(name), detail))
	}
}

// Forbid reports a field that must not be set, if bad.
func (f Field) Forbid(name string, bad bool, detail string) {
	if bad {
		f.Add(field.Forbidden(f.Path(name), detail))
	}
}

// Reject reports an invalid value, if bad. The error shows a pointer as what it points to.
func (f Field) Reject(name string, bad bool, value any, detail string) {
	if bad {
		f.Add(field.Invalid(f.Path(name), value, detail))
	}
}

// Rejectf is Reject with a detail as for [fmt.Sprintf].
func (f Field) Rejectf(name string, bad bool, value any, format string, args ...any) {
	if bad {
		f.Add(field.Invalid(f.Path(name), value, fmt.Sprintf(format, args...)))
	}
}

// Duplicate reports a value that occurs twice, if bad.
func (f Field) Duplicate(name string, bad bool, value any) {
	if bad {
		f.Add(field.Duplicate(f.Path(name), value))
	}
}

// Problems reports each problem of a value, as the rules of [validation] return them.
func (f Field) Problems(name string, value any, problems []string) {
	for _, problem := range problems {
		f.Reject(name, true, value, problem)
	}
}

// Match requires a value that a rule accepts.
func (f Field) Match(name, value string, rule func(string) []string) {
	f.Problems(name, value, rule(value))
}

// RequireMatch requires a value, and that a rule accepts it.
func (f Field) RequireMatch(name, value string, rule func(string) []string) {
	f.Require(name, value != "", "")
	f.MatchIfSet(name, value, rule)
}

// MatchIfSet requires that a rule accepts a value, unless it is empty.
func (f Field) MatchIfSet(name, value string, rule func(string) []string) {
	if value != "" {
		f.Match(name, value, rule)
	}
}

// MatchPointer requires that a rule accepts a value, unless it is nil.
func (f Field) MatchPointer(name string, value *string, rule func(string) []string) {
	if value != nil {
		f.Match(name, *value, rule)
	}
}

// Joined is a rule that reports all problems as one.
func Joined(rule func(string) []string) func(string) []string {
	return func(value string) []string {
		if problems := rule(value); len(problems) > 0 {
			return []string{strings.Join(problems, ",")}
		}
		return nil
	}
}

// Kind is a rule for the name of a kind.
func Kind(kind string) []string {
	problems := Joined(validation.IsDNS1035Label)(strings.ToLower(kind))
	for i := range problems {
		problems[i] = "may have mixed case, but should otherwise match: " + problems[i]
	}
	return problems
}

// Port requires a number of a port.
func (f Field) Port(name string, port int32) {
	f.Problems(name, port, validation.IsValidPortNum(int(port)))
}

// Nonnegative requires a number that is not below zero.
func (f Field) Nonnegative(name string, n int64) {
	f.Reject(name, n < 0, n, apivalidation.IsNegativeErrorMsg)
}

// AtMost limits the length of a list.
func (f Field) AtMost(name string, n, most int) {
	if n > most {
		f.Add(field.TooMany(f.Path(name), n, most))
	}
}

// Short limits the length of a text, in bytes.
func (f Field) Short(name string, length, longest int) {
	if length > longest {
		f.Add(field.TooLong(f.Path(name), "", longest))
	}
}

// Labels requires valid names and values of labels.
func (f Field) Labels(name string, labels map[string]string) {
	f.Add(metavalidation.ValidateLabels(labels, f.Path(name))...)
}

// LabelSelector requires a valid selector, or none.
func (f Field) LabelSelector(name string, s *metav1.LabelSelector) {
	f.Add(metavalidation.ValidateLabelSelector(s, metavalidation.LabelSelectorValidationOptions{}, f.Path(name))...)
}

// Conditions requires valid conditions.
func (f Field) Conditions(name string, conditions []metav1.Condition) {
	f.Add(metavalidation.ValidateConditions(conditions, f.Path(name))...)
}

// Immutable requires that an update leaves a value as it was.
func (f Field) Immutable(name string, value, old any) {
	f.Add(apivalidation.ValidateImmutableField(value, old, f.Path(name))...)
}

// Unchanged is Immutable for a rule that the real server declares: the error does not contain the value.
func (f Field) Unchanged(name string, value, old any) {
	f.Reject(name, !equality.Semantic.DeepEqual(value, old), nil, apivalidation.FieldImmutableErrorMsg)
}

// OneOf requires a value, and that it is among the allowed ones.
func OneOf[T ~string](f Field, name string, value T, allowed ...T) {
	if value == "" {
		f.Require(name, false, "")
		return
	}
	Supported(f, name, value, allowed...)
}

// Supported requires one of the allowed values.
func Supported[T ~string](f Field, name string, value T, allowed ...T) {
	if !slices.Contains(allowed, value) {
		f.Add(field.NotSupported(f.Path(name), value, allowed))
	}
}

// SupportedPointer is Supported for a value that may be nil.
func SupportedPointer[T ~string](f Field, name string, value *T, allowed ...T) {
	if value != nil {
		Supported(f, name, *value, allowed...)
	}
}

// Unique reports a value that was seen before, and adds it to those seen. It reports whether the value is new.
func Unique[T comparable](f Field, name string, seen sets.Set[T], value T) bool {
	return UniqueAs(f, name, seen, value, value)
}

// UniqueAs is Unique with what the error shows of the value.
func UniqueAs[T comparable](f Field, name string, seen sets.Set[T], value T, shown any) bool {
	known := seen.Has(value)
	f.Duplicate(name, known, shown)
	seen.Insert(value)
	return !known
}

// Each runs rules for every item of a list.
func Each[T any](f Field, name string, list []T, rules func(Field, *T)) {
	if len(list) == 0 {
		return
	}
	path := f.Path(name)
	for i := range list {
		rules(Field{path.Index(i), f.errs}, &list[i])
	}
}
