package customresource

import (
	"context"
	"maps"
	"reflect"
	"slices"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/localapi/internal/expressions"
)

// ValidateRules evaluates the rules of the schema, unless errors found before make that pointless.
//
// Source: k8s.io/apiextensions-apiserver pkg/registry/customresource/strategy.go Validate, ValidateUpdate.
func (s *Schema) ValidateRules(ctx context.Context, obj, old runtime.Object, found field.ErrorList,
	warn func(string),
) field.ErrorList {
	rules := s.rules()
	if rules == nil {
		return nil
	}
	if slices.ContainsFunc(found, blocking) {
		return field.ErrorList{field.Invalid(nil, nil, "some validation rules were not checked because the object was "+
			"invalid; correct the existing errors to complete validation")}
	}
	c := expressions.Change{New: contentOf(obj), Warn: warn}
	if old != nil {
		c.Old, c.Lenient = contentOf(old), true
	}
	errs, _ := rules.Validate(ctx, c, rules.Budget())
	return errs
}

// blocking reports whether an error means that an object may not have the form that rules rely on.
func blocking(e *field.Error) bool {
	switch e.Type {
	case field.ErrorTypeNotSupported, field.ErrorTypeRequired, field.ErrorTypeTooLong, field.ErrorTypeTooMany,
		field.ErrorTypeTypeInvalid:
		return true
	}
	return false
}

// defaultRules evaluates rules on the defaults of a schema.
type defaultRules struct {
	cel  expressions.Evaluator
	left int64 // of the budget; negative: it is used up
	used bool  // left is set
}

// validate evaluates the rules on a default, both as a value that has not changed and as a new one.
//
// Source: k8s.io/apiextensions-apiserver pkg/apiserver/schema/defaulting/validation.go validate.
func (d *defaultRules) validate(path *field.Path, rules expressions.Rules, value any) field.ErrorList {
	if !d.used {
		d.left, d.used = rules.Budget(), true
	}
	ctx := context.Background() // the budget bounds the work
	errs, left := rules.Validate(ctx, expressions.Change{Path: path, New: value, Old: value}, d.left)
	if len(errs) == 0 {
		var leftAsNew int64
		errs, leftAsNew = rules.Validate(ctx, expressions.Change{Path: path, New: value}, d.left)
		left = min(left, leftAsNew)
	}
	d.left = left
	return errs
}

// ValidateDefaults checks the defaults in a structural schema against the schema, and against its rules if cel is not
// nil. (Defaults of metadata of embedded resources are validated by themselves, not in the object around them.)
//
// Source: k8s.io/apiextensions-apiserver pkg/apiserver/schema/defaulting/validation.go ValidateDefaults.
func ValidateDefaults(path *field.Path, s *structuralschema.Structural, cel expressions.Evaluator) field.ErrorList {
	return (&defaultRules{cel: cel}).walk(path, s)
}

func (d *defaultRules) walk(path *field.Path, s *structuralschema.Structural) (errs field.ErrorList) {
	if s == nil || d.left < 0 {
		return nil
	}
	if s.Default.Object != nil {
		errs = append(errs, d.validateDefault(path.Child("default"), s)...)
	}
	errs = append(errs, d.walk(path.Child("items"), s.Items)...)
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		property := s.Properties[name]
		errs = append(errs, d.walk(path.Child("properties").Key(name), &property)...)
	}
	return errs
}

func (d *defaultRules) validateDefault(path *field.Path, s *structuralschema.Structural) (errs field.ErrorList) {
	value := s.Default.Object
	pruned := runtime.DeepCopyJSONValue(value)
	pruning.Prune(pruned, s, s.XEmbeddedResource)
	if !reflect.DeepEqual(pruned, value) {
		errs = append(errs, field.Invalid(path, value, "must not have unknown fields"))
	}
	if embedded := validateEmbedded(path, value, s); len(embedded) > 0 {
		return append(errs, embedded...)
	}
	values := s.ToKubeOpenAPI()
	prepareForJudging(values)
	if problems := judge(path, value, nil, values); len(problems) > 0 || d.cel == nil {
		return append(errs, problems...)
	}
	if rules := d.cel.Rules(s, s.XEmbeddedResource); rules != nil {
		errs = append(errs, d.validate(path, rules, value)...)
	}
	return errs
}
