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

func (c *checks) validateSchema(v versionSchema, path *field.Path) (errs field.ErrorList) {
	if v.schema == nil || v.schema.OpenAPIV3Schema == nil {
		return nil
	}
	s, at := v.schema.OpenAPIV3Schema, path.Child("openAPIV3Schema")
	if v.hasStatus {
		errs = append(errs, validateRoot(s, path)...)
	}
	if s.Nullable {
		errs = append(errs,
			field.Forbidden(path.Child("openAPIV3Schema.nullable"), "nullable cannot be true at the root"))
	}
	structural, err := structuralschema.NewStructural(s)
	sound := err == nil
	if err == nil {
		problems := structuralschema.ValidateStructural(at, structural)
		if len(problems) == 0 {
			problems = customresource.ValidateDefaults(at, structural, c.cel)
		}
		errs = append(errs, problems...)
		sound = len(problems) == 0
	}
	problems := (&schemaRules{}).validate(s, at, true)
	errs = append(errs, problems...)
	if sound && c.cel != nil {
		errs = append(errs, c.cel.ValidateRules(at, s, c.origin(v, problems))...)
	}
	if len(errs) == 0 && err != nil {
		errs = append(errs, field.Invalid(at, "", err.Error()))
	}
	return errs
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

func validateRoot(s *apiextensions.JSONSchemaProps, path *field.Path) field.ErrorList {
	v := reflect.ValueOf(s).Elem()
	for i := range v.NumField() {
		name := v.Type().Field(i).Name
		switch {
		case v.Field(i).IsZero():
		case name == "Type" && s.Type != "object":
			return field.ErrorList{field.Invalid(path.Child("openAPIV3Schema.type"), s.Type,
				`only "object" is allowed as the type at the root of the schema if the status subresource is enabled`)}
		case !slices.Contains(allowedAtRoot, name):
			return field.ErrorList{field.Invalid(path.Child("openAPIV3Schema"), *s, fmt.Sprintf(
				"only %v fields are allowed at the root of the schema if the status subresource is enabled",
				allowedAtRoot,
			))}
		}
	}
	return nil
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

func (r *schemaRules) validate(s *apiextensions.JSONSchemaProps, path *field.Path, root bool) field.ErrorList {
	if s == nil {
		return nil
	}
	errs := r.validateNode(s, path)
	if a := s.AdditionalProperties; a != nil {
		if len(s.Properties) != 0 && (!a.Allows || a.Schema != nil) {
			errs = append(errs, field.Forbidden(path.Child("additionalProperties"),
				"additionalProperties and properties are mutual exclusive"))
		}
		below := r
		if r.inMetadata {
			below = r.without("inside additionalProperties applying to object metadata")
		}
		errs = append(errs, below.validate(a.Schema, path.Child("additionalProperties"), false)...)
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
		errs = append(errs, below.validate(&property, path.Child("properties").Key(name), false)...)
	}
	errs = append(errs, r.validate(s.Not, path.Child("not"), false)...)
	for _, list := range []struct {
		name    string
		schemas []apiextensions.JSONSchemaProps
	}{{"allOf", s.AllOf}, {"oneOf", s.OneOf}, {"anyOf", s.AnyOf}} {
		for i := range list.schemas {
			errs = append(errs, r.validate(&list.schemas[i], path.Child(list.name).Index(i), false)...)
		}
	}
	if s.Items != nil {
		errs = append(errs, r.validate(s.Items.Schema, path.Child("items"), false)...)
	}
	return append(errs, validateExtensions(s, path)...)
}

var schemaTypes = []string{"array", "boolean", "integer", "number", "object", "string"}

// validateNode checks which features of OpenAPI the node uses.
func (r *schemaRules) validateNode(s *apiextensions.JSONSchemaProps, path *field.Path) (errs field.ErrorList) {
	if s.Type != "" && !slices.Contains(schemaTypes, s.Type) {
		errs = append(errs, field.NotSupported(path.Child("type"), s.Type, schemaTypes))
	}
	if s.Default != nil && r.noDefaults != "" {
		errs = append(errs, field.Forbidden(path.Child("default"), "must not be set "+r.noDefaults))
	}
	for _, f := range []struct {
		set             bool
		name, forbidden string
	}{
		{s.ID != "", "id", "id is not supported"},
		{s.AdditionalItems != nil, "additionalItems", "additionalItems is not supported"},
		{len(s.PatternProperties) != 0, "patternProperties", "patternProperties is not supported"},
		{len(s.Definitions) != 0, "definitions", "definitions is not supported"},
		{s.Dependencies != nil, "dependencies", "dependencies is not supported"},
		{s.Ref != nil, "$ref", "$ref is not supported"},
		{s.Type == "null", "type", "type cannot be set to null, use nullable as an alternative"},
		{s.Items != nil && len(s.Items.JSONSchemas) != 0, "items", "items must be a schema object and not an array"},
		{
			r.inMetadata && s.XEmbeddedResource, "x-kubernetes-embedded-resource",
			"must not be used inside of resource meta",
		},
		{
			s.UniqueItems, "uniqueItems",
			"uniqueItems cannot be set to true since the runtime complexity becomes quadratic",
		},
	} {
		if f.set {
			errs = append(errs, field.Forbidden(path.Child(f.name), f.forbidden))
		}
	}
	return errs
}

// validateExtensions validates the x-kubernetes- fields of a node.
func validateExtensions(s *apiextensions.JSONSchemaProps, path *field.Path) (errs field.ErrorList) {
	if s.XPreserveUnknownFields != nil && !*s.XPreserveUnknownFields {
		errs = append(errs,
			field.Invalid(path.Child("x-kubernetes-preserve-unknown-fields"), false, "must be true or undefined"))
	}
	if s.XMapType != nil {
		errs = append(errs, needsType(s, "object", "x-kubernetes-map-type", path)...)
		if *s.XMapType != "atomic" && *s.XMapType != "granular" {
			errs = append(errs,
				field.NotSupported(path.Child("x-kubernetes-map-type"), *s.XMapType, []string{"atomic", "granular"}))
		}
	}
	errs = append(errs, validateListType(s, path)...)
	errs = append(errs, validateMapKeys(s, path)...)
	for i, rule := range s.XValidations {
		errs = append(errs, validateRule(rule, path.Child("x-kubernetes-validations").Index(i))...)
	}
	return errs
}

func needsType(s *apiextensions.JSONSchemaProps, want, because string, path *field.Path) field.ErrorList {
	message := fmt.Sprintf("must be %s if %s is specified", want, because)
	switch s.Type {
	case want:
		return nil
	case "":
		return field.ErrorList{field.Required(path.Child("type"), message)}
	}
	return field.ErrorList{field.Invalid(path.Child("type"), s.Type, message)}
}

func listType(s *apiextensions.JSONSchemaProps) string {
	return ptr.Deref(s.XListType, "")
}

func validateListType(s *apiextensions.JSONSchemaProps, path *field.Path) field.ErrorList {
	if s.XListType == nil {
		return nil
	}
	errs := needsType(s, "array", "x-kubernetes-list-type", path)
	if s.Type == "array" && listType(s) == "set" && s.Items != nil && s.Items.Schema != nil {
		const atomic = "must be atomic as item of a list with x-kubernetes-list-type=set"
		items := s.Items.Schema
		if items.Type == "array" && items.XListType != nil && *items.XListType != "atomic" {
			errs = append(errs, field.Invalid(path.Child("items", "x-kubernetes-list-type"), items.XListType, atomic))
		}
		if items.Type == "object" && (items.XMapType == nil || *items.XMapType != "atomic") {
			errs = append(errs, field.Invalid(path.Child("items", "x-kubernetes-map-type"), items.XListType, atomic))
		}
	}
	if all := []string{"atomic", "set", "map"}; !slices.Contains(all, listType(s)) {
		errs = append(errs, field.NotSupported(path.Child("x-kubernetes-list-type"), *s.XListType, all))
	}
	return errs
}

// validateMapKeys validates lists that are maps, and their keys.
func validateMapKeys(s *apiextensions.JSONSchemaProps, path *field.Path) (errs field.ErrorList) {
	if len(s.XListMapKeys) > 0 && listType(s) != "map" {
		const message = "must be map if x-kubernetes-list-map-keys is non-empty"
		if s.XListType == nil {
			errs = append(errs, field.Required(path.Child("x-kubernetes-list-type"), message))
		} else {
			errs = append(errs, field.Invalid(path.Child("x-kubernetes-list-type"), *s.XListType, message))
		}
	}
	if listType(s) == "map" {
		if len(s.XListMapKeys) == 0 {
			errs = append(errs, field.Required(path.Child("x-kubernetes-list-map-keys"),
				"must not be empty if x-kubernetes-list-type is map"))
		}
		switch {
		case s.Items == nil:
			errs = append(errs,
				field.Required(path.Child("items"), "must have a schema if x-kubernetes-list-type is map"))
		case s.Items.Schema == nil:
			errs = append(errs, field.Invalid(path.Child("items"), s.Items,
				"must only have a single schema if x-kubernetes-list-type is map"))
		case s.Items.Schema.Type != "object":
			errs = append(errs, field.Invalid(path.Child("items", "type"), s.Items.Schema.Type,
				"must be object if parent array's x-kubernetes-list-type is map"))
		default:
			errs = append(errs, validateKeys(s, path)...)
		}
	}
	if t := listType(s); (t == "map" || t == "set") && s.Items != nil && s.Items.Schema != nil &&
		s.Items.Schema.Nullable {
		errs = append(errs,
			field.Forbidden(path.Child("items", "nullable"), "cannot be nullable when x-kubernetes-list-type is "+t))
	}
	return errs
}

func validateKeys(s *apiextensions.JSONSchemaProps, path *field.Path) (errs field.ErrorList) {
	items := s.Items.Schema
	for i, key := range s.XListMapKeys {
		at := path.Child("items", "properties").Key(key)
		property, ok := items.Properties[key]
		if !ok {
			errs = append(errs, field.Invalid(path.Child("x-kubernetes-list-map-keys"), s.XListMapKeys,
				"entries must all be names of item properties"))
		}
		if slices.Contains(s.XListMapKeys[:i], key) {
			errs = append(errs, field.Invalid(path.Child("x-kubernetes-list-map-keys"), s.XListMapKeys,
				"must not contain duplicate entries"))
		}
		if !ok {
			continue
		}
		if property.Type == "array" || property.Type == "object" {
			errs = append(errs, field.Invalid(at.Child("type"), items.Type,
				"must be a scalar type if parent array's x-kubernetes-list-type is map"))
		}
		if !slices.Contains(items.Required, key) && property.Default == nil {
			errs = append(errs, field.Required(at.Child("default"),
				"this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"))
		}
		if property.Nullable {
			errs = append(errs, field.Forbidden(at.Child("nullable"),
				"this property is in x-kubernetes-list-map-keys, so it cannot be nullable"))
		}
	}
	return errs
}

var ruleReasons = []apiextensions.FieldValueErrorReason{
	apiextensions.FieldValueDuplicate, apiextensions.FieldValueForbidden, apiextensions.FieldValueInvalid,
	apiextensions.FieldValueRequired,
}

// validateRule checks everything about a CEL rule except its expressions.
func validateRule(rule apiextensions.ValidationRule, path *field.Path) (errs field.ErrorList) {
	expression, message := strings.TrimSpace(rule.Rule), strings.TrimSpace(rule.Message)
	lines := func(s string) bool { return strings.ContainsAny(s, "\n\r") }
	switch {
	case expression == "":
		errs = append(errs, field.Required(path.Child("rule"), "rule is not specified"))
	case rule.Message != "" && message == "":
		errs = append(errs, field.Invalid(path.Child("message"), rule.Message, "must be non-empty if specified"))
	case lines(message):
		errs = append(errs, field.Invalid(path.Child("message"), rule.Message, "must not contain line breaks"))
	case lines(expression) && message == "":
		errs = append(errs,
			field.Required(path.Child("message"), "message must be specified if rule contains line breaks"))
	}
	if rule.MessageExpression != "" && strings.TrimSpace(rule.MessageExpression) == "" {
		errs = append(errs,
			field.Required(path.Child("messageExpression"), "messageExpression must be non-empty if specified"))
	}
	if rule.Reason != nil && !slices.Contains(ruleReasons, *rule.Reason) {
		errs = append(errs, field.NotSupported(path.Child("reason"), *rule.Reason, ruleReasons))
	}
	if rule.FieldPath != "" && strings.TrimSpace(rule.FieldPath) == "" {
		errs = append(errs, field.Invalid(path.Child("fieldPath"), rule.FieldPath, "must be non-empty if specified"))
	}
	if lines(rule.FieldPath) {
		errs = append(errs, field.Invalid(path.Child("fieldPath"), rule.FieldPath, "must not contain line breaks"))
	}
	return errs
}
