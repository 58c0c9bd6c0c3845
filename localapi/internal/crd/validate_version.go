package crd

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/flyball-dev/flyball/localapi/internal/customresource"
	"github.com/flyball-dev/flyball/localapi/internal/verify"
)

var (
	columnTypes   = []string{"boolean", "date", "integer", "number", "string"}
	columnFormats = []string{"byte", "date", "date-time", "double", "float", "int32", "int64", "password"}
)

func validateColumn(f verify.Field, c *apiextensions.CustomResourceColumnDefinition) {
	oneOf := "must be one of " + strings.Join(columnTypes, ",")
	f.Require("name", c.Name != "", "")
	f.Require("type", c.Type != "", oneOf)
	f.Reject("type", c.Type != "" && !slices.Contains(columnTypes, c.Type), c.Type, oneOf)
	f.Reject("format", c.Format != "" && !slices.Contains(columnFormats, c.Format), c.Format,
		"must be one of "+strings.Join(columnFormats, ","))
	f.RequireMatch("JSONPath", c.JSONPath, simplePath)
}

// simplePath accepts a path of names, each preceded by a dot.
func simplePath(s string) []string {
	if !strings.HasPrefix(s, ".") {
		return []string{"must be a simple json path starting with ."}
	}
	return nil
}

// pathUnder accepts a simple path under a field.
func pathUnder(field string) func(string) []string {
	return func(s string) []string {
		problems := simplePath(s)
		if len(problems) == 0 && !strings.HasPrefix(s, field+".") {
			problems = []string{"should be a json path under " + field}
		}
		return problems
	}
}

func validateSubresources(f verify.Field, s *apiextensions.CustomResourceSubresources) {
	if s == nil || s.Scale == nil {
		return
	}
	f = f.Child("subresources.scale")
	f.RequireMatch("specReplicasPath", s.Scale.SpecReplicasPath, pathUnder(".spec"))
	f.RequireMatch("statusReplicasPath", s.Scale.StatusReplicasPath, pathUnder(".status"))
	if p := s.Scale.LabelSelectorPath; p != nil && *p != "" {
		problems := simplePath(*p)
		f.Problems("labelSelectorPath", *p, problems)
		f.Reject("labelSelectorPath",
			len(problems) == 0 && !strings.HasPrefix(*p, ".spec.") && !strings.HasPrefix(*p, ".status."), p,
			"should be a json path under either .spec or .status")
	}
}

// maxSelectableFields bounds the number of a type's selectable fields.
const maxSelectableFields = 8

func validateSelectable(
	f verify.Field, selectable []apiextensions.SelectableField, v *apiextensions.CustomResourceValidation,
) {
	if v == nil || v.OpenAPIV3Schema == nil {
		f.Reject("selectableFields", true, "", "may only be set when validations.schema is included")
		return
	}
	structural, err := structuralschema.NewStructural(v.OpenAPIV3Schema)
	if err != nil {
		return // errors in the schema are reported elsewhere
	}
	seen := sets.New[string]()
	verify.Each(f, "selectableFields", selectable, func(f verify.Field, s *apiextensions.SelectableField) {
		switch found, err := follow(structural, s.JSONPath); {
		case s.JSONPath == "":
			f.Require("jsonPath", false, "")
			return
		case err != nil:
			f.Rejectf("jsonPath", true, s.JSONPath, "is an invalid path: %v", err)
			return
		case strings.HasPrefix(s.JSONPath, ".metadata"):
			f.Reject("jsonPath", true, s.JSONPath, "must not point to fields in metadata")
		default:
			f.Reject("jsonPath", !slices.Contains([]string{"string", "boolean", "integer"}, found.Type), s.JSONPath,
				"must point to a field of type string, boolean or integer. Enum string fields and strings with "+
					"formats are allowed.")
		}
		verify.Unique(f, "jsonPath", seen, s.JSONPath)
	})
	f.AtMost("selectableFields", len(seen), maxSelectableFields)
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
	for _, name := range slices.Sorted(maps.Keys(p.Properties)) {
		below := p.Properties[name]
		walkProps(&below, f)
	}
}
