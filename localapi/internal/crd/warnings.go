package crd

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/flyball-dev/flyball/localapi/internal/customresource"
)

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
