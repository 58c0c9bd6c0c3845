package customresource

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilvalidation "k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/flyball-dev/flyball/localapi/internal/expressions"
	"github.com/flyball-dev/flyball/localapi/internal/resource"
)

// Schema is the schema of one version of a custom resource. It is immutable. All methods may be called concurrently.
type Schema struct {
	structural *structuralschema.Structural

	// values is the schema that values are validated against. status is the part for the status subresource, or nil if
	// there is none.
	values, status *spec.Schema

	// rules are the rules in CEL, which are compiled on first use. They are nil if there are none, or if the server
	// does not evaluate them.
	rules func() expressions.Rules
}

// NewSchema returns the schema of a version of a definition. cel evaluates its rules; nil leaves them out. Errors: the
// schema is not structural because of its form ($ref and the like). The validation of the definition reports that in
// more detail.
func NewSchema(props *apiextensionsv1.JSONSchemaProps, cel expressions.Evaluator) (*Schema, error) {
	structural, err := Structural(props)
	if err != nil {
		return nil, err
	}
	s := &Schema{structural: structural, values: structural.ToKubeOpenAPI()}
	s.rules = sync.OnceValue(func() expressions.Rules {
		if cel == nil {
			return nil
		}
		return cel.Rules(structural, true)
	})
	prepareForJudging(s.values)
	if status, ok := s.values.Properties["status"]; ok {
		s.status = &status
	}
	return s, nil
}

// Structural returns the structural part of a schema.
func Structural(props *apiextensionsv1.JSONSchemaProps) (*structuralschema.Structural, error) {
	internal, err := Internal(props)
	if err != nil {
		return nil, err
	}
	return structuralschema.NewStructural(internal)
}

// Internal returns the schema in the form for which the rules of k8s.io/apiextensions-apiserver are written.
func Internal(props *apiextensionsv1.JSONSchemaProps) (*apiextensions.JSONSchemaProps, error) {
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props.DeepCopy(), internal,
		nil); err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	return internal, nil
}

// prepareForJudging adapts a schema to the validator. It removes formats that the API does not know, and gives a value
// that may be an integer or a string both types.
//
// Source: k8s.io/apiextensions-apiserver pkg/apiserver/validation/validation.go and formats.go.
func prepareForJudging(s *spec.Schema) {
	eachSchema(s, func(s *spec.Schema) {
		if !KnownFormat(strings.Join(s.Type, ""), s.Format) {
			s.Format = ""
		}
		if both, _ := s.Extensions.GetBool("x-kubernetes-int-or-string"); both {
			s.Type = spec.StringOrArray{"integer", "string"}
		}
		if keys, ok := s.Extensions["x-kubernetes-list-map-keys"].([]string); ok {
			s.AddExtension("x-kubernetes-list-map-keys", anySlice(keys))
		}
	})
}

// anySlice returns a list in the form of decoded JSON.
func anySlice(strings []string) []any {
	all := make([]any, len(strings))
	for i, s := range strings {
		all[i] = s
	}
	return all
}

func eachSchema(s *spec.Schema, f func(*spec.Schema)) {
	if s == nil {
		return
	}
	f(s)
	for k, p := range s.Properties {
		eachSchema(&p, f)
		s.Properties[k] = p
	}
	if s.Items != nil {
		eachSchema(s.Items.Schema, f)
	}
	if s.AdditionalProperties != nil {
		eachSchema(s.AdditionalProperties.Schema, f)
	}
	for _, list := range [][]spec.Schema{s.AllOf, s.AnyOf, s.OneOf} {
		for i := range list {
			eachSchema(&list[i], f)
		}
	}
	eachSchema(s.Not, f)
}

// stringFormats are the string formats that the API checks, without dashes.
//
// Source: k8s.io/apiextensions-apiserver v0.37.2 pkg/apiserver/validation/formats.go.
var stringFormats = []string{
	"bsonobjectid", "byte", "cidr", "creditcard", "date", "datetime", "duration", "email", "hexcolor", "hostname",
	"ipv4", "ipv6",
	"isbn", "isbn10", "isbn13", "k8slongname", "k8sshortname", "mac", "password", "rgbcolor", "ssn", "uri", "uuid",
	"uuid3", "uuid4", "uuid5",
}

// KnownFormat reports whether values of a type are checked against a format. An empty format is known.
func KnownFormat(schemaType, format string) bool {
	if format == "" {
		return true
	}
	switch schemaType {
	case "", "string":
		return slices.Contains(stringFormats, strings.ReplaceAll(format, "-", ""))
	case "integer":
		return format == "int32" || format == "int64"
	case "number":
		return format == "float" || format == "double"
	}
	return false
}

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

// deprecationWarning returns the warning for every request to a deprecated version, or "" if it is not deprecated.
//
// Source: k8s.io/apiextensions-apiserver pkg/apiserver/customresource_handler.go.
func deprecationWarning(v *apiextensionsv1.CustomResourceDefinitionVersion, kind schema.GroupVersionKind) string {
	switch {
	case !v.Deprecated:
		return ""
	case v.DeprecationWarning != nil:
		return *v.DeprecationWarning
	}
	return fmt.Sprintf("%s %s is deprecated", kind.GroupVersion(), kind.Kind)
}

// finalizerWarnings returns warnings about new finalizers without a domain.
//
// Source: k8s.io/apiextensions-apiserver pkg/registry/customresource/validator.go validateKubeFinalizerName.
func finalizerWarnings(obj, old runtime.Object) []string {
	var before, all []string
	if old != nil {
		before = resource.Meta(old).GetFinalizers()
	}
	added := slices.DeleteFunc(slices.Clone(resource.Meta(obj).GetFinalizers()),
		func(f string) bool { return slices.Contains(before, f) })
	slices.Sort(added)
	standard := []string{
		metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents,
		string(corev1.FinalizerKubernetes),
	}
	for _, f := range slices.Compact(added) {
		for _, problem := range utilvalidation.IsQualifiedName(f) {
			all = append(all, fmt.Sprintf("metadata.finalizers: %q: %s", f, problem))
		}
		switch {
		case strings.Contains(f, "/") || slices.Contains(standard, f):
		case strings.Contains(f, "."):
			all = append(all, fmt.Sprintf(
				"metadata.finalizers: %q: prefer a domain-qualified finalizer name including a path (/) to avoid "+
					"accidental conflicts with other finalizer writers", f,
			))
		default:
			all = append(all, fmt.Sprintf(
				"metadata.finalizers: %q: prefer a domain-qualified finalizer name to avoid accidental conflicts "+
					"with other finalizer writers", f,
			))
		}
	}
	return all
}
