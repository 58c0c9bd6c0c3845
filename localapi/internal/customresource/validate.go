package customresource

import (
	"cmp"
	"encoding/json"
	"errors"
	"reflect"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	openapierrors "k8s.io/kube-openapi/pkg/validation/errors"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"

	"github.com/flyball-dev/flyball/localapi/internal/verify"
)

// Validate validates a whole object. old is nil for a new object. Otherwise values that have not changed since old are
// accepted, so that a stricter schema does not block changes elsewhere in the object.
//
// Source: k8s.io/apiextensions-apiserver pkg/registry/customresource/strategy.go.
func (s *Schema) Validate(obj, old runtime.Object) field.ErrorList {
	content, before := contentOf(obj), contentOf(old)
	errs := judge(nil, content, anyOf(before), s.values)
	errs = append(errs, validateEmbedded(nil, content, s.structural)...)
	return append(errs, s.validateLists(content, before)...)
}

// ValidateStatus validates a write of the status.
//
// Source: k8s.io/apiextensions-apiserver pkg/registry/customresource/status_strategy.go.
func (s *Schema) ValidateStatus(obj, old runtime.Object) (errs field.ErrorList) {
	content, before := contentOf(obj), contentOf(old)
	if status, ok := content["status"]; ok && s.status != nil {
		errs = judge(field.NewPath("status"), status, before["status"], s.status)
	}
	return append(errs, s.validateLists(content, before)...)
}

// anyOf returns content as a value, or nil if there is none.
func anyOf(content map[string]any) any {
	if content == nil {
		return nil
	}
	return content
}

func contentOf(obj runtime.Object) map[string]any {
	if u, ok := obj.(*unstructured.Unstructured); ok && u != nil {
		return u.Object
	}
	return nil
}

// validateLists reports duplicates in lists that are sets or maps, unless the list had duplicates before.
func (s *Schema) validateLists(content, before map[string]any) field.ErrorList {
	errs := listtype.ValidateListSetsAndMaps(nil, s.structural, content)
	if len(errs) > 0 && before != nil && len(listtype.ValidateListSetsAndMaps(nil, s.structural, before)) > 0 {
		return nil
	}
	return errs
}

// judge validates a value against a schema.
func judge(path *field.Path, value, before any, s *spec.Schema) (errs field.ErrorList) {
	var result *validate.Result
	if before == nil {
		result = validate.NewSchemaValidator(s, nil, "", strfmt.Default).Validate(value)
	} else {
		result = (&lenient{schema: s, before: before}).Validate(value)
	}
	for _, err := range result.Errors {
		errs = append(errs, fieldError(path, err))
	}
	return errs
}

// fieldError words an error of the validator as the API does.
//
// Source: k8s.io/apiextensions-apiserver pkg/apiserver/validation/validation.go kubeOpenAPIResultToFieldErrors.
func fieldError(path *field.Path, err error) *field.Error {
	var v *openapierrors.Validation
	if !errors.As(err, &v) {
		return field.Invalid(path, "", err.Error())
	}
	if v.Name != "" && v.Name != "." {
		path = path.Child(strings.TrimPrefix(v.Name, "."))
	}
	value := v.Value
	if value == nil {
		value = ""
	}
	switch v.Code() {
	case openapierrors.RequiredFailCode:
		return field.Required(path, "")
	case openapierrors.EnumFailCode:
		return field.NotSupported(path, v.Value, enumValues(v.Values))
	case openapierrors.TooLongFailCode:
		return field.TooLong(path, "", number(v.Valid))
	case openapierrors.MaxItemsFailCode, openapierrors.TooManyPropertiesCode:
		return field.TooMany(path, number(v.Value), number(v.Valid))
	case openapierrors.InvalidTypeCode:
		return field.TypeInvalid(path, value, err.Error())
	}
	return field.Invalid(path, value, err.Error())
}

func enumValues(values []any) []string {
	var all []string
	for _, v := range values {
		text, ok := v.(string)
		if !ok {
			b, err := json.Marshal(v)
			if err != nil {
				continue
			}
			text = string(b)
		}
		all = append(all, text)
	}
	return all
}

func number(v any) int {
	if n, ok := v.(int64); ok {
		return int(n)
	}
	return -1
}

// lenient validates a value as the validator does, but accepts whatever has not changed.
//
// Source: k8s.io/apiextensions-apiserver pkg/apiserver/validation/ratcheting.go (KEP-4008).
type lenient struct {
	schema *spec.Schema
	root   any
	path   string
	before any // the value before the change; nil if it is not known
	value  any // the value being validated, for nested validators
}

// Validate implements [validate.ValueValidator].
func (l *lenient) Validate(value any) *validate.Result {
	l.value = value
	v := validate.NewSchemaValidator(l.schema, l.root, l.path, strfmt.Default,
		func(o *validate.SchemaValidatorOptions) {
			o.NewValidatorForField, o.NewValidatorForIndex = l.field, l.index
		})
	result := v.Validate(value)
	if result.IsValid() || !reflect.DeepEqual(value, l.before) {
		return result
	}
	forgiven := &validate.Result{}
	forgiven.MergeAsWarnings(result)
	return forgiven
}

// SetPath implements [validate.ValueValidator]. The path is set by the constructor.
func (*lenient) SetPath(string) {}

// Applies implements [validate.ValueValidator].
func (*lenient) Applies(any, reflect.Kind) bool { return true }

func (l *lenient) field(name string, s *spec.Schema, root any, path string, f strfmt.Registry,
	o ...validate.Option,
) validate.ValueValidator {
	if before, ok := l.before.(map[string]any); ok && (l.path != "" || name != "kind" && name != "apiVersion") {
		if value, ok := before[name]; ok {
			return &lenient{schema: s, root: root, path: path, before: value}
		}
	}
	return validate.NewSchemaValidator(s, root, path, f, o...)
}

func (l *lenient) index(i int, s *spec.Schema, root any, path string, f strfmt.Registry,
	o ...validate.Option,
) validate.ValueValidator {
	if before := l.itemBefore(i); before != nil {
		return &lenient{schema: s, root: root, path: path, before: before}
	}
	return validate.NewSchemaValidator(s, root, path, f, o...)
}

// itemBefore returns the item with the keys of item i in the list before the change, or nil if there is none. Only
// lists that are maps have keys.
func (l *lenient) itemBefore(i int) any {
	if t, _ := l.schema.Extensions.GetString("x-kubernetes-list-type"); t != "map" {
		return nil
	}
	keys, _ := l.schema.Extensions.GetStringSlice("x-kubernetes-list-map-keys")
	now, _ := l.value.([]any)
	before, _ := l.before.([]any)
	if i >= len(now) {
		return nil
	}
	item, _ := now[i].(map[string]any)
	for _, candidate := range before {
		old, ok := candidate.(map[string]any)
		same := ok && item != nil
		for _, k := range keys {
			same = same && reflect.DeepEqual(item[k], old[k])
		}
		if same {
			return old
		}
	}
	return nil
}

// validateEmbedded validates the metadata of embedded resources.
//
// Source: k8s.io/apiextensions-apiserver pkg/apiserver/schema/objectmeta/validation.go.
func validateEmbedded(path *field.Path, x any, s *structuralschema.Structural) (errs field.ErrorList) {
	if s == nil {
		return nil
	}
	switch x := x.(type) {
	case map[string]any:
		if s.XEmbeddedResource {
			errs = append(errs, verify.Errors(path, func(f verify.Field) { validateResource(f, x) })...)
		}
		for name, value := range x {
			at := path.Key(name)
			if _, ok := s.Properties[name]; ok {
				at = path.Child(name)
			}
			errs = append(errs, validateEmbedded(at, value, fieldSchema(name, s))...)
		}
	case []any:
		for i, value := range x {
			errs = append(errs, validateEmbedded(path.Index(i), value, s.Items)...)
		}
	}
	return errs
}

func validateResource(f verify.Field, x map[string]any) {
	validateText(f, "apiVersion", x, func(version string) []string {
		if _, err := schema.ParseGroupVersion(version); err != nil {
			return []string{err.Error()}
		}
		return nil
	})
	validateText(f, "kind", x, verify.Kind)
	f.Add(validateMetadata(f.Path("metadata"), x["metadata"])...)
}

// validateText requires a field with a text that a rule accepts.
func validateText(f verify.Field, name string, x map[string]any, rule func(string) []string) {
	value, found := x[name]
	text, ok := value.(string)
	f.Require(name, found, "")
	f.Reject(name, found && !ok, value, "must be a string")
	f.Reject(name, ok && text == "", text, "must not be empty")
	f.MatchIfSet(name, text, rule)
}

func validateMetadata(path *field.Path, raw any) field.ErrorList {
	values, ok := raw.(map[string]any)
	if !ok {
		return nil
	}
	var m metav1.ObjectMeta
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(values, &m); err != nil {
		return field.ErrorList{field.Invalid(path, raw, err.Error())}
	}
	m.Name = cmp.Or(m.Name, "unnamed") // an embedded resource needs no name
	name := func(name string, prefix bool) []string {
		if prefix {
			return content.IsPathSegmentPrefix(name)
		}
		return content.IsPathSegmentName(name)
	}
	return validation.ValidateObjectMetaAccessor(&m, m.Namespace != "", name, path)
}
