package customresource

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/flyball-dev/flyball/localapi/internal/expressions"
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
