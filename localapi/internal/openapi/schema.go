package openapi

import (
	"encoding/json"
	"reflect"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// schema is the part of an OpenAPI v3 schema that clients of a Kubernetes API read.
type schema struct {
	Description          string             `json:"description,omitempty"`
	Type                 string             `json:"type,omitempty"`
	Format               string             `json:"format,omitempty"`
	Ref                  string             `json:"$ref,omitempty"`
	AllOf                []*schema          `json:"allOf,omitempty"`
	OneOf                []*schema          `json:"oneOf,omitempty"`
	Items                *schema            `json:"items,omitempty"`
	Properties           map[string]*schema `json:"properties,omitempty"`
	AdditionalProperties *schema            `json:"additionalProperties,omitempty"`
	Required             []string           `json:"required,omitempty"`

	Kinds         []groupVersionKind `json:"x-kubernetes-group-version-kind,omitempty"`
	PatchStrategy string             `json:"x-kubernetes-patch-strategy,omitempty"`
	PatchMergeKey string             `json:"x-kubernetes-patch-merge-key,omitempty"`
	ListType      string             `json:"x-kubernetes-list-type,omitempty"`
	ListMapKeys   []string           `json:"x-kubernetes-list-map-keys,omitempty"`
	MapType       string             `json:"x-kubernetes-map-type,omitempty"`
}

type groupVersionKind struct {
	Group   string `json:"group"`
	Kind    string `json:"kind"`
	Version string `json:"version"`
}

const schemaPrefix = "#/components/schemas/"

// components collects the schemas of types and of all that they refer to.
type components map[string]*schema

// modelNamer, documented, schemaTyper and severalTyper are methods that generated API types have.
type (
	modelNamer  interface{ OpenAPIModelName() string }
	documented  interface{ SwaggerDoc() map[string]string }
	schemaTyper interface {
		OpenAPISchemaType() []string
		OpenAPISchemaFormat() string
	}
	severalTyper interface{ OpenAPIV3OneOfTypes() []string }
)

// modelName returns the name of a type's schema.
func modelName(t reflect.Type) string {
	if n, ok := reflect.Zero(t).Interface().(modelNamer); ok {
		return n.OpenAPIModelName()
	}
	parts := strings.Split(t.PkgPath(), "/")
	domain := strings.Split(parts[0], ".")
	for i, j := 0, len(domain)-1; i < j; i, j = i+1, j-1 {
		domain[i], domain[j] = domain[j], domain[i]
	}
	return strings.Join(append(append(domain, parts[1:]...), t.Name()), ".")
}

// of returns the schema of a value of type t, adding to c what it refers to.
func (c components) of(t reflect.Type) *schema {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if s, ok := reflect.Zero(t).Interface().(schemaTyper); ok {
		name := modelName(t)
		if c[name] == nil {
			c[name] = scalar(s)
		}
		return &schema{Ref: schemaPrefix + name}
	}
	switch t.Kind() {
	case reflect.Bool:
		return &schema{Type: "boolean"}
	case reflect.Int32, reflect.Uint32, reflect.Int16, reflect.Int8:
		return &schema{Type: "integer", Format: "int32"}
	case reflect.Int, reflect.Int64, reflect.Uint, reflect.Uint64:
		return &schema{Type: "integer", Format: "int64"}
	case reflect.Float32, reflect.Float64:
		return &schema{Type: "number", Format: "double"}
	case reflect.String:
		return &schema{Type: "string"}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return &schema{Type: "string", Format: "byte"}
		}
		return &schema{Type: "array", Items: c.of(t.Elem())}
	case reflect.Map:
		return &schema{Type: "object", AdditionalProperties: c.of(t.Elem())}
	case reflect.Struct:
		return &schema{Ref: schemaPrefix + c.add(t)}
	}
	return &schema{} // an interface: anything
}

// scalar returns the schema of a type that defines its own JSON form.
func scalar(t schemaTyper) *schema {
	types, s := t.OpenAPISchemaType(), &schema{Format: t.OpenAPISchemaFormat()}
	if several, ok := t.(severalTyper); ok {
		for _, one := range several.OpenAPIV3OneOfTypes() {
			s.OneOf = append(s.OneOf, &schema{Type: one})
		}
	} else if len(types) > 0 {
		s.Type = types[0]
	}
	return s
}

// add adds the struct type t, once, and returns its name.
func (c components) add(t reflect.Type) string {
	name := modelName(t)
	if c[name] != nil {
		return name
	}
	s := &schema{Type: "object"}
	c[name] = s // before its fields: types may refer to themselves
	docs := map[string]string{}
	if d, ok := reflect.Zero(t).Interface().(documented); ok {
		docs = d.SwaggerDoc()
	}
	s.Description = docs[""]
	if t == ownerReference {
		s.MapType = "atomic"
	}
	c.addFields(s, t, docs)
	return name
}

func (c components) addFields(s *schema, t reflect.Type, docs map[string]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case !f.IsExported() || name == "-":
			continue
		case name == "" && f.Anonymous:
			embedded := docs
			if d, ok := reflect.Zero(f.Type).Interface().(documented); ok {
				embedded = d.SwaggerDoc()
			}
			c.addFields(s, f.Type, embedded)
			continue
		case name == "":
			continue
		}
		if s.Properties == nil {
			s.Properties = map[string]*schema{}
		}
		s.Properties[name] = c.field(f, docs[name])
		if options == "" && f.Type.Kind() != reflect.Pointer {
			s.Required = append(s.Required, name)
		}
	}
}

// field returns the schema of a struct's field. Its tags define how it is patched.
func (c components) field(f reflect.StructField, doc string) *schema {
	s := c.of(f.Type)
	if s.Ref != "" { // siblings of a reference are ignored by definition
		s = &schema{AllOf: []*schema{s}}
	}
	s.Description = doc
	s.PatchStrategy, s.PatchMergeKey = f.Tag.Get("patchStrategy"), f.Tag.Get("patchMergeKey")
	if s.Type != "array" {
		return s
	}
	switch {
	case s.PatchMergeKey != "":
		s.ListType, s.ListMapKeys = "map", []string{s.PatchMergeKey}
	case strings.Contains(s.PatchStrategy, "merge"):
		s.ListType = "set"
	default:
		s.ListType = "atomic"
	}
	return s
}

var objectMeta = reflect.TypeFor[metav1.ObjectMeta]()

// ownerReference is the one struct in metadata that is applied, and owned, as a whole. Only a comment of the type has
// that.
//
// Source: k8s.io/apimachinery v0.37.2 pkg/apis/meta/v1/types.go, +structType=atomic.
var ownerReference = reflect.TypeFor[metav1.OwnerReference]()

// ObjectMetaRef is the reference to the schema of metadata, which all documents have.
var ObjectMetaRef = schemaPrefix + modelName(objectMeta)

// MetadataSchemas returns the schema of metadata and those that it refers to, by name. The caller owns the map.
func MetadataSchemas() map[string]*spec.Schema {
	_, all := Schemas(objectMeta)
	return all
}

// Schemas returns the name of the schema of a Go type, and that schema with those that it refers to, by name. The
// caller owns the map.
func Schemas(t reflect.Type) (name string, all map[string]*spec.Schema) {
	types := components{}
	name = types.add(t)
	all = map[string]*spec.Schema{}
	for name, s := range types {
		text, err := json.Marshal(s)
		if err != nil {
			panic(err) // cannot fail: plain structs of strings
		}
		converted := &spec.Schema{}
		if err := json.Unmarshal(text, converted); err != nil {
			panic(err) // cannot fail: both are schemas
		}
		all[name] = converted
	}
	return name, all
}
