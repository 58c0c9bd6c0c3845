package customresource

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Schema is the schema of one version of a custom resource. It is immutable. All methods may be called concurrently.
type Schema struct {
	structural *structuralschema.Structural

	// values is what values are judged by; status is its part for the status subresource, nil if there is none.
	values, status *spec.Schema
}

// NewSchema reads the schema of a version of a definition. Errors: it is not structural by its very shape ($ref and the
// like), which validation of the definition tells in more detail.
func NewSchema(props *apiextensionsv1.JSONSchemaProps) (*Schema, error) {
	structural, err := Structural(props)
	if err != nil {
		return nil, err
	}
	s := &Schema{structural: structural, values: structural.ToKubeOpenAPI()}
	prepareForJudging(s.values)
	if status, ok := s.values.Properties["status"]; ok {
		s.status = &status
	}
	return s, nil
}

// Structural is the structural part of a schema.
func Structural(props *apiextensionsv1.JSONSchemaProps) (*structuralschema.Structural, error) {
	internal, err := Internal(props)
	if err != nil {
		return nil, err
	}
	return structuralschema.NewStructural(internal)
}

// Internal is the schema in the form that the rules of k8s.io/apiextensions-apiserver are written for.
func Internal(props *apiextensionsv1.JSONSchemaProps) (*apiextensions.JSONSchemaProps, error) {
	internal := &apiextensions.JSONSchemaProps{}
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(props.DeepCopy(), internal, nil); err != nil {
		return nil, fmt.Errorf("read schema: %w", err)
	}
	return internal, nil
}

// prepareForJudging removes what the validator would take amiss: formats that the API does not know are not checked, and
// what may be an integer or a string has both types.
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

// anySlice is a list as it is in decoded JSON.
func anySlice(strings []string) []any {
	all := make([]any, len(strings))
	for i, s := range strings {
		all[i] = s
	}
	return all
}

// eachSchema calls f for s and all schemas in it.
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

// stringFormats are the formats of strings that the API checks, without dashes.
//
// Source: k8s.io/apiextensions-apiserver v0.37.2 pkg/apiserver/validation/formats.go.
var stringFormats = []string{
	"bsonobjectid", "byte", "cidr", "creditcard", "date", "datetime", "duration", "email", "hexcolor", "hostname", "ipv4", "ipv6",
	"isbn", "isbn10", "isbn13", "k8slongname", "k8sshortname", "mac", "password", "rgbcolor", "ssn", "uri", "uuid", "uuid3", "uuid4", "uuid5",
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
