package crd

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/localapi/internal/customresource"
	"github.com/flyball-dev/flyball/localapi/internal/expressions"
	"github.com/flyball-dev/flyball/localapi/internal/verify"
)

// allowedAtRoot are the fields that may be set at the root of a schema with a status subresource. The schema of the
// status is a part of it.
var allowedAtRoot = []string{
	"Description", "Type", "Format", "Title", "Maximum", "ExclusiveMaximum", "Minimum", "ExclusiveMinimum",
	"MaxLength", "MinLength",
	"Pattern", "MaxItems", "MinItems", "UniqueItems", "MultipleOf", "Required", "Items", "Properties", "ExternalDocs",
	"Example",
	"XPreserveUnknownFields", "XValidations",
}

// versionSchema is the schema of a version, or of all versions.
type versionSchema struct {
	schema    *apiextensions.CustomResourceValidation
	version   string
	hasStatus bool
}

func (c *checks) validateSchema(f verify.Field, v versionSchema) {
	if v.schema == nil || v.schema.OpenAPIV3Schema == nil {
		return
	}
	s, path := v.schema.OpenAPIV3Schema, f.Path("openAPIV3Schema")
	structural, err := structuralschema.NewStructural(s)
	valid := f.Passes(func(f verify.Field) {
		if v.hasStatus {
			validateRoot(f, s)
		}
		f.Forbid("openAPIV3Schema.nullable", s.Nullable, "nullable cannot be true at the root")
		var problems field.ErrorList
		if err == nil {
			if problems = structuralschema.ValidateStructural(path, structural); len(problems) == 0 {
				problems = customresource.ValidateDefaults(path, structural, c.cel)
			}
			f.Add(problems...)
		}
		sound := err == nil && len(problems) == 0
		problems = verify.Errors(path, func(f verify.Field) { (&schemaRules{}).validate(f, s, true) })
		f.Add(problems...)
		if sound && c.cel != nil {
			f.Add(c.cel.ValidateRules(path, s, c.origin(v, problems))...)
		}
	})
	if valid && err != nil {
		f.Reject("openAPIV3Schema", true, "", err.Error())
	}
}

// origin describes the schema of a version to the evaluator of its rules.
func (c *checks) origin(v versionSchema, problems field.ErrorList) expressions.Origin {
	o := expressions.Origin{Problems: problems}
	if c.before == nil {
		return o
	}
	if all := c.before.Spec.Validation; all != nil {
		o.Before = append(o.Before, all.OpenAPIV3Schema)
	}
	for _, old := range c.before.Spec.Versions {
		if old.Schema != nil {
			o.Before = append(o.Before, old.Schema.OpenAPIV3Schema)
		}
	}
	old, err := apiextensions.GetSchemaForVersion(c.before, v.version)
	o.Unchanged = err == nil && equality.Semantic.DeepEqual(old, v.schema)
	return o
}

func validateRoot(f verify.Field, s *apiextensions.JSONSchemaProps) {
	v := reflect.ValueOf(s).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		switch {
		case v.Field(i).IsZero():
		case name == "Type" && s.Type != "object":
			f.Reject("openAPIV3Schema.type", true, s.Type,
				`only "object" is allowed as the type at the root of the schema if the status subresource is enabled`)
			return
		case !slices.Contains(allowedAtRoot, name):
			f.Rejectf("openAPIV3Schema", true, *s,
				"only %v fields are allowed at the root of the schema if the status subresource is enabled",
				allowedAtRoot)
			return
		}
	}
}

// schemaRules validates schemas node by node. Its fields describe the position in the schema.
type schemaRules struct {
	noDefaults string // why defaults are not allowed here; "" if they are
	inMetadata bool   // inside apiVersion, kind or metadata of an object
}

func (r *schemaRules) without(reason string) *schemaRules {
	return &schemaRules{noDefaults: reason, inMetadata: r.inMetadata}
}

var metaFields = []string{"metadata", "kind", "apiVersion"}

func (r *schemaRules) validate(f verify.Field, s *apiextensions.JSONSchemaProps, root bool) {
	if s == nil {
		return
	}
	r.validateNode(f, s)
	if a := s.AdditionalProperties; a != nil {
		f.Forbid("additionalProperties", len(s.Properties) != 0 && (!a.Allows || a.Schema != nil),
			"additionalProperties and properties are mutual exclusive")
		below := r
		if r.inMetadata {
			below = r.without("inside additionalProperties applying to object metadata")
		}
		below.validate(f.Child("additionalProperties"), a.Schema, false)
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		below := r
		if (root || s.XEmbeddedResource) && slices.Contains(metaFields, name) {
			below = &schemaRules{noDefaults: r.noDefaults, inMetadata: true}
			if root {
				below.noDefaults = "in top-level " + name
			}
		}
		property := s.Properties[name]
		below.validate(f.Child("properties").Key(name), &property, false)
	}
	each := func(f verify.Field, s *apiextensions.JSONSchemaProps) { r.validate(f, s, false) }
	each(f.Child("not"), s.Not)
	verify.Each(f, "allOf", s.AllOf, each)
	verify.Each(f, "oneOf", s.OneOf, each)
	verify.Each(f, "anyOf", s.AnyOf, each)
	if s.Items != nil {
		each(f.Child("items"), s.Items.Schema)
	}
	validateExtensions(f, s)
}

var schemaTypes = []string{"array", "boolean", "integer", "number", "object", "string"}

// validateNode checks which features of OpenAPI the node uses.
func (r *schemaRules) validateNode(f verify.Field, s *apiextensions.JSONSchemaProps) {
	if s.Type != "" {
		verify.Supported(f, "type", s.Type, schemaTypes...)
	}
	f.Forbid("default", s.Default != nil && r.noDefaults != "", "must not be set "+r.noDefaults)
	f.Forbid("id", s.ID != "", "id is not supported")
	f.Forbid("additionalItems", s.AdditionalItems != nil, "additionalItems is not supported")
	f.Forbid("patternProperties", len(s.PatternProperties) != 0, "patternProperties is not supported")
	f.Forbid("definitions", len(s.Definitions) != 0, "definitions is not supported")
	f.Forbid("dependencies", s.Dependencies != nil, "dependencies is not supported")
	f.Forbid("$ref", s.Ref != nil, "$ref is not supported")
	f.Forbid("type", s.Type == "null", "type cannot be set to null, use nullable as an alternative")
	f.Forbid("items", s.Items != nil && len(s.Items.JSONSchemas) != 0,
		"items must be a schema object and not an array")
	f.Forbid("x-kubernetes-embedded-resource", r.inMetadata && s.XEmbeddedResource,
		"must not be used inside of resource meta")
	f.Forbid("uniqueItems", s.UniqueItems,
		"uniqueItems cannot be set to true since the runtime complexity becomes quadratic")
}

// validateExtensions validates the x-kubernetes- fields of a node.
func validateExtensions(f verify.Field, s *apiextensions.JSONSchemaProps) {
	f.Reject("x-kubernetes-preserve-unknown-fields", !ptr.Deref(s.XPreserveUnknownFields, true), false,
		"must be true or undefined")
	if s.XMapType != nil {
		needsType(f, s, "object", "x-kubernetes-map-type")
		verify.Supported(f, "x-kubernetes-map-type", *s.XMapType, "atomic", "granular")
	}
	validateListType(f, s)
	validateMapKeys(f, s)
	verify.Each(f, "x-kubernetes-validations", s.XValidations, validateRule)
}

func needsType(f verify.Field, s *apiextensions.JSONSchemaProps, want, because string) {
	message := fmt.Sprintf("must be %s if %s is specified", want, because)
	f.Require("type", s.Type != "", message)
	f.Reject("type", s.Type != "" && s.Type != want, s.Type, message)
}

func listType(s *apiextensions.JSONSchemaProps) string {
	return ptr.Deref(s.XListType, "")
}

func validateListType(f verify.Field, s *apiextensions.JSONSchemaProps) {
	if s.XListType == nil {
		return
	}
	needsType(f, s, "array", "x-kubernetes-list-type")
	if s.Type == "array" && listType(s) == "set" && s.Items != nil && s.Items.Schema != nil {
		const atomic = "must be atomic as item of a list with x-kubernetes-list-type=set"
		items := s.Items.Schema
		f.Reject("items.x-kubernetes-list-type",
			items.Type == "array" && ptr.Deref(items.XListType, "atomic") != "atomic", items.XListType, atomic)
		f.Reject("items.x-kubernetes-map-type",
			items.Type == "object" && ptr.Deref(items.XMapType, "") != "atomic", items.XListType, atomic)
	}
	verify.Supported(f, "x-kubernetes-list-type", *s.XListType, "atomic", "set", "map")
}

func validateMapKeys(f verify.Field, s *apiextensions.JSONSchemaProps) {
	kind := listType(s)
	if len(s.XListMapKeys) > 0 && kind != "map" {
		const message = "must be map if x-kubernetes-list-map-keys is non-empty"
		f.Require("x-kubernetes-list-type", s.XListType != nil, message)
		f.Reject("x-kubernetes-list-type", s.XListType != nil, kind, message)
	}
	if kind == "map" {
		f.Require("x-kubernetes-list-map-keys", len(s.XListMapKeys) > 0,
			"must not be empty if x-kubernetes-list-type is map")
		switch {
		case s.Items == nil:
			f.Require("items", false, "must have a schema if x-kubernetes-list-type is map")
		case s.Items.Schema == nil:
			f.Reject("items", true, s.Items, "must only have a single schema if x-kubernetes-list-type is map")
		case s.Items.Schema.Type != "object":
			f.Reject("items.type", true, s.Items.Schema.Type,
				"must be object if parent array's x-kubernetes-list-type is map")
		default:
			validateKeys(f, s)
		}
	}
	f.Forbid("items.nullable",
		(kind == "map" || kind == "set") && s.Items != nil && s.Items.Schema != nil && s.Items.Schema.Nullable,
		"cannot be nullable when x-kubernetes-list-type is "+kind)
}

func validateKeys(f verify.Field, s *apiextensions.JSONSchemaProps) {
	items := s.Items.Schema
	for i, key := range s.XListMapKeys {
		property, ok := items.Properties[key]
		f.Reject("x-kubernetes-list-map-keys", !ok, s.XListMapKeys, "entries must all be names of item properties")
		f.Reject("x-kubernetes-list-map-keys", slices.Contains(s.XListMapKeys[:i], key), s.XListMapKeys,
			"must not contain duplicate entries")
		if !ok {
			continue
		}
		at := f.Child("items.properties").Key(key)
		at.Reject("type", property.Type == "array" || property.Type == "object", items.Type,
			"must be a scalar type if parent array's x-kubernetes-list-type is map")
		at.Require("default", slices.Contains(items.Required, key) || property.Default != nil,
			"this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property")
		at.Forbid("nullable", property.Nullable,
			"this property is in x-kubernetes-list-map-keys, so it cannot be nullable")
	}
}

// validateRule checks everything about a CEL rule except its expressions.
func validateRule(f verify.Field, rule *apiextensions.ValidationRule) {
	expression, message := strings.TrimSpace(rule.Rule), strings.TrimSpace(rule.Message)
	lines := func(s string) bool { return strings.ContainsAny(s, "\n\r") }
	switch {
	case expression == "":
		f.Require("rule", false, "rule is not specified")
	case rule.Message != "" && message == "":
		f.Reject("message", true, rule.Message, "must be non-empty if specified")
	case lines(message):
		f.Reject("message", true, rule.Message, "must not contain line breaks")
	case lines(expression):
		f.Require("message", message != "", "message must be specified if rule contains line breaks")
	}
	blank := func(s string) bool { return s != "" && strings.TrimSpace(s) == "" }
	f.Require("messageExpression", !blank(rule.MessageExpression), "messageExpression must be non-empty if specified")
	verify.SupportedPointer(f, "reason", rule.Reason, apiextensions.FieldValueDuplicate,
		apiextensions.FieldValueForbidden, apiextensions.FieldValueInvalid, apiextensions.FieldValueRequired)
	f.Reject("fieldPath", blank(rule.FieldPath), rule.FieldPath, "must be non-empty if specified")
	f.Reject("fieldPath", lines(rule.FieldPath), rule.FieldPath, "must not contain line breaks")
}
