package openapi

import (
	"encoding/json"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

var objectMeta = reflect.TypeFor[metav1.ObjectMeta]()

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
