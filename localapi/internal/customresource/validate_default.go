package customresource

import (
	"maps"
	"reflect"
	"slices"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/localapi/internal/expressions"
)

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
