package customresource

import (
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Default fills in the defaults of the schema. An explicit null counts as absent where the schema does not allow it.
//
// Source: k8s.io/apiextensions-apiserver pkg/apiserver/schema/defaulting/algorithm.go.
func (s *Schema) Default(obj runtime.Object) {
	if u, ok := obj.(*unstructured.Unstructured); ok {
		fillIn(u.Object, s.structural)
	}
}

// fillIn sets the defaults below x.
func fillIn(x any, s *structuralschema.Structural) {
	if s == nil {
		return
	}
	switch x := x.(type) {
	case map[string]any:
		for name, property := range s.Properties {
			if value, ok := x[name]; property.Default.Object != nil && (!ok || nullToReplace(value, &property)) {
				x[name] = runtime.DeepCopyJSONValue(property.Default.Object)
			}
		}
		for name, value := range x {
			below := fieldSchema(name, s)
			if below != nil && nullToReplace(value, below) {
				x[name] = runtime.DeepCopyJSONValue(below.Default.Object)
			}
			fillIn(x[name], below)
		}
	case []any:
		for i, value := range x {
			if s.Items != nil && nullToReplace(value, s.Items) {
				x[i] = runtime.DeepCopyJSONValue(s.Items.Default.Object)
			}
			fillIn(x[i], s.Items)
		}
	}
}

// nullToReplace reports whether value is a null where the schema allows none.
func nullToReplace(value any, s *structuralschema.Structural) bool {
	return value == nil && !s.Nullable
}

// fieldSchema returns the schema of a field of an object, or nil if there is none.
func fieldSchema(name string, s *structuralschema.Structural) *structuralschema.Structural {
	if s == nil {
		return nil
	}
	if property, ok := s.Properties[name]; ok {
		return &property
	}
	if s.AdditionalProperties != nil {
		return s.AdditionalProperties.Structural
	}
	return nil
}

// dropNulls removes fields with null values that may not be null and have no default.
//
// Source: k8s.io/apiextensions-apiserver pkg/apiserver/schema/defaulting/prunenulls.go.
func dropNulls(x any, s *structuralschema.Structural) {
	switch x := x.(type) {
	case map[string]any:
		for name, value := range x {
			below := fieldSchema(name, s)
			if value == nil && below != nil && !below.Nullable && below.Default.Object == nil {
				delete(x, name)
				continue
			}
			dropNulls(value, below)
		}
	case []any:
		var items *structuralschema.Structural
		if s != nil {
			items = s.Items
		}
		for _, value := range x {
			dropNulls(value, items)
		}
	}
}
