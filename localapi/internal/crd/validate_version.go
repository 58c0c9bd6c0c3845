package crd

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/flyball-dev/flyball/localapi/internal/customresource"
)

var (
	columnTypes   = []string{"boolean", "date", "integer", "number", "string"}
	columnFormats = []string{"byte", "date", "date-time", "double", "float", "int32", "int64", "password"}
)

func validateColumn(c *apiextensions.CustomResourceColumnDefinition, path *field.Path) (errs field.ErrorList) {
	if c.Name == "" {
		errs = append(errs, field.Required(path.Child("name"), ""))
	}
	oneOf := "must be one of " + strings.Join(columnTypes, ",")
	if c.Type == "" {
		errs = append(errs, field.Required(path.Child("type"), oneOf))
	} else if !slices.Contains(columnTypes, c.Type) {
		errs = append(errs, field.Invalid(path.Child("type"), c.Type, oneOf))
	}
	if c.Format != "" && !slices.Contains(columnFormats, c.Format) {
		errs = append(errs,
			field.Invalid(path.Child("format"), c.Format, "must be one of "+strings.Join(columnFormats, ",")))
	}
	if c.JSONPath == "" {
		return append(errs, field.Required(path.Child("JSONPath"), ""))
	}
	return append(errs, validatePath(c.JSONPath, path.Child("JSONPath"))...)
}

// validatePath validates a path of names, each preceded by a dot.
func validatePath(s string, path *field.Path) field.ErrorList {
	switch {
	case s == "":
		return field.ErrorList{field.Invalid(path, s, "must not be empty")}
	case s[0] != '.':
		return field.ErrorList{field.Invalid(path, s, "must be a simple json path starting with .")}
	}
	return nil
}

func validateSubresources(s *apiextensions.CustomResourceSubresources, path *field.Path) field.ErrorList {
	if s == nil || s.Scale == nil {
		return nil
	}
	errs := validateReplicasPath(s.Scale.SpecReplicasPath, ".spec", path.Child("scale.specReplicasPath"))
	errs = append(errs,
		validateReplicasPath(s.Scale.StatusReplicasPath, ".status", path.Child("scale.statusReplicasPath"))...)
	selector := s.Scale.LabelSelectorPath
	if selector == nil || *selector == "" {
		return errs
	}
	at := path.Child("scale.labelSelectorPath")
	if problems := validatePath(*selector, at); len(problems) > 0 {
		return append(errs, problems...)
	}
	if !strings.HasPrefix(*selector, ".spec.") && !strings.HasPrefix(*selector, ".status.") {
		errs = append(errs, field.Invalid(at, selector, "should be a json path under either .spec or .status"))
	}
	return errs
}

func validateReplicasPath(s, under string, path *field.Path) field.ErrorList {
	if s == "" {
		return field.ErrorList{field.Required(path, "")}
	}
	if errs := validatePath(s, path); len(errs) > 0 {
		return errs
	}
	if !strings.HasPrefix(s, under+".") {
		return field.ErrorList{field.Invalid(path, s, "should be a json path under "+under)}
	}
	return nil
}

// maxSelectableFields bounds the number of a type's selectable fields.
const maxSelectableFields = 8

func validateSelectable(selectable []apiextensions.SelectableField, v *apiextensions.CustomResourceValidation,
	path *field.Path,
) (errs field.ErrorList) {
	if v == nil || v.OpenAPIV3Schema == nil {
		return field.ErrorList{field.Invalid(path, "", "may only be set when validations.schema is included")}
	}
	structural, err := structuralschema.NewStructural(v.OpenAPIV3Schema)
	if err != nil {
		return nil // errors in the schema are reported elsewhere
	}
	seen := map[string]bool{}
	for i, s := range selectable {
		at := path.Index(i).Child("jsonPath")
		switch found, err := follow(structural, s.JSONPath); {
		case s.JSONPath == "":
			errs = append(errs, field.Required(at, ""))
			continue
		case err != nil:
			errs = append(errs, field.Invalid(at, s.JSONPath, fmt.Sprintf("is an invalid path: %v", err)))
			continue
		case strings.HasPrefix(s.JSONPath, ".metadata"):
			errs = append(errs, field.Invalid(at, s.JSONPath, "must not point to fields in metadata"))
		case !slices.Contains([]string{"string", "boolean", "integer"}, found.Type):
			errs = append(errs, field.Invalid(at, s.JSONPath,
				"must point to a field of type string, boolean or integer. Enum string fields and strings with "+
					"formats are allowed."))
		}
		if seen[s.JSONPath] {
			errs = append(errs, field.Duplicate(at, s.JSONPath))
		}
		seen[s.JSONPath] = true
	}
	if len(seen) > maxSelectableFields {
		errs = append(errs, field.TooMany(path, len(seen), maxSelectableFields))
	}
	return errs
}

// follow returns the schema that a path of names leads to.
func follow(s *structuralschema.Structural, path string) (*structuralschema.Structural, error) {
	if !strings.HasPrefix(path, ".") {
		return nil, fmt.Errorf("expected a '.' at the start of %q", path)
	}
	for _, name := range strings.Split(path[1:], ".") {
		below, ok := s.Properties[name]
		if !ok {
			return nil, fmt.Errorf("does not refer to a valid field")
		}
		s = &below
	}
	return s, nil
}

// warnings returns warnings about the parts of a definition that the API or this server ignores. rules means that the
// server evaluates rules in CEL.
//
// Source: k8s.io/apiextensions-apiserver pkg/registry/customresourcedefinition/strategy.go WarningsOnCreate,
// WarningsOnUpdate.
func warnings(obj, old runtime.Object, rules bool) []string {
	var before []string
	if old != nil {
		before = remarks(of(old))
	}
	all := slices.DeleteFunc(remarks(of(obj)), func(w string) bool { return slices.Contains(before, w) })
	if rules {
		return all
	}
	return append(all, unevaluated(of(obj))...)
}

func remarks(crd *apiextensionsv1.CustomResourceDefinition) []string {
	var formats, sets []string
	eachProps(crd, func(_ string, p *apiextensionsv1.JSONSchemaProps) {
		if !customresource.KnownFormat(p.Type, p.Format) {
			formats = append(formats, fmt.Sprintf("unrecognized format %q", p.Format))
		}
		if p.XListType != nil && *p.XListType == "set" && p.Items != nil && p.Items.Schema != nil &&
			(p.Items.Schema.Type == "object" || p.Items.Schema.Type == "array") {
			sets = append(sets, fmt.Sprintf(
				"x-kubernetes-list-type: set for items of type %q is not supported by server-side apply or CEL "+
					"validation rules", p.Items.Schema.Type,
			))
		}
	})
	slices.Sort(sets)
	return append(formats, slices.Compact(sets)...)
}

// unevaluated returns warnings about the rules of a definition, for a server that evaluates none.
func unevaluated(crd *apiextensionsv1.CustomResourceDefinition) []string {
	var all []string
	rules := map[string]int{}
	eachProps(crd, func(version string, p *apiextensionsv1.JSONSchemaProps) { rules[version] += len(p.XValidations) })
	for _, v := range crd.Spec.Versions {
		if n := rules[v.Name]; n > 0 {
			all = append(all, fmt.Sprintf(
				"x-kubernetes-validations: this server does not evaluate CEL: the rules of version %s (%d) are "+
					"not enforced", v.Name, n,
			))
		}
	}
	return all
}

// eachProps calls f for every schema in every version.
func eachProps(crd *apiextensionsv1.CustomResourceDefinition,
	f func(version string, p *apiextensionsv1.JSONSchemaProps),
) {
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		if v.Schema != nil {
			walkProps(v.Schema.OpenAPIV3Schema, func(p *apiextensionsv1.JSONSchemaProps) { f(v.Name, p) })
		}
	}
}

func walkProps(p *apiextensionsv1.JSONSchemaProps, f func(*apiextensionsv1.JSONSchemaProps)) {
	if p == nil {
		return
	}
	f(p)
	if p.Items != nil {
		walkProps(p.Items.Schema, f)
	}
	if p.AdditionalProperties != nil {
		walkProps(p.AdditionalProperties.Schema, f)
	}
	walkProps(p.Not, f)
	for _, list := range [][]apiextensionsv1.JSONSchemaProps{p.AllOf, p.AnyOf, p.OneOf} {
		for i := range list {
			walkProps(&list[i], f)
		}
	}
	names := make([]string, 0, len(p.Properties))
	for name := range p.Properties {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		below := p.Properties[name]
		walkProps(&below, f)
	}
}
