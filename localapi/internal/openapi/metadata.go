package openapi

import (
	"encoding/json"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

var objectMeta = reflect.TypeFor[metav1.ObjectMeta]()

// ObjectMetaRef refers to the schema of metadata, which all documents have.
var ObjectMetaRef = schemaPrefix + modelName(objectMeta)

// MetadataSchemas are the schema of metadata and those that it refers to, by name. The map is the caller's.
func MetadataSchemas() map[string]*spec.Schema {
	_, all := Schemas(objectMeta)
	return all
}

// Schemas are the schema of a Go type, with its name, and those that it refers to, by name. The map is the caller's.
func Schemas(t reflect.Type) (name string, all map[string]*spec.Schema) {
	types := components{}
	name = types.add(t)
	all = map[string]*spec.Schema{}
	for name, s := range types {
		text, err := json.Marshal(s)
		if err != nil {
			panic(err) // plain structs of strings
		}
		converted := &spec.Schema{}
		if err := json.Unmarshal(text, converted); err != nil {
			panic(err) // a schema is a schema
		}
		all[name] = converted
	}
	return name, all
}
