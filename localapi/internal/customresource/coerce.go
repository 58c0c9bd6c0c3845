package customresource

import (
	"errors"
	"slices"
	"strings"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/kube-openapi/pkg/validation/spec"
	kjson "sigs.k8s.io/json"

	"github.com/flyball-dev/flyball/localapi/internal/openapi"
)

// Coerce drops unknown fields from obj, and brings the metadata of obj and of embedded resources into the right shape.
// It returns the paths of the dropped fields. Errors: metadata that cannot be read.
//
// Source: k8s.io/apiextensions-apiserver pkg/apiserver/customresource_handler.go unstructuredNegotiatedSerializer,
// schemaCoercingDecoder; pkg/apiserver/schema/objectmeta/algorithm.go.
func (s *Schema) Coerce(obj runtime.Object) (unknown []string, err error) {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok {
		return nil, nil
	}
	apiVersion, kind := u.Object["apiVersion"], u.Object["kind"]
	metadata, unknown, err := readMetadata(nil, u.Object)
	if err != nil {
		return nil, err
	}
	unknown = append(unknown, pruning.PruneWithOptions(u.Object, s.structural, true,
		structuralschema.UnknownFieldPathOptions{TrackUnknownFieldPaths: true})...)
	dropNulls(u.Object, s.structural)
	below, err := coerceEmbedded(nil, u.Object, s.structural)
	if err != nil {
		return nil, err
	}
	unknown = append(unknown, below...)
	u.Object["apiVersion"], u.Object["kind"] = apiVersion, kind
	if metadata != nil {
		u.Object["metadata"] = metadata
	}
	return unknown, nil
}

// readMetadata reads the metadata of obj. It returns the metadata with its known fields, or nil if there is none, and
// the paths of unknown fields.
func readMetadata(path *field.Path, obj map[string]any) (metadata map[string]any, unknown []string, err error) {
	raw, ok := obj["metadata"]
	if !ok {
		return nil, nil, nil
	}
	text, err := json.Marshal(raw)
	if err != nil {
		return nil, nil, err
	}
	var m metav1.ObjectMeta
	problems, err := kjson.UnmarshalStrict(text, &m)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range problems {
		if f := kjson.FieldError(nil); errors.As(p, &f) {
			unknown = append(unknown, path.Child("metadata").String()+"."+f.FieldPath())
		}
	}
	metadata, err = runtime.DefaultUnstructuredConverter.ToUnstructured(&m)
	if m.CreationTimestamp.IsZero() {
		delete(metadata, "creationTimestamp")
	}
	return metadata, unknown, err
}

// coerceEmbedded does what Coerce does with metadata for the embedded resources below x.
func coerceEmbedded(path *field.Path, x any, s *structuralschema.Structural) (unknown []string, err error) {
	if s == nil {
		return nil, nil
	}
	switch x := x.(type) {
	case map[string]any:
		if s.XEmbeddedResource {
			if unknown, err = coerceResource(path, x); err != nil {
				return nil, err
			}
		}
		for name, value := range x {
			at := path.Key(name)
			if _, ok := s.Properties[name]; ok {
				at = path.Child(name)
			}
			more, err := coerceEmbedded(at, value, fieldSchema(name, s))
			if err != nil {
				return nil, err
			}
			unknown = append(unknown, more...)
		}
		slices.Sort(unknown)
	case []any:
		for i, value := range x {
			more, err := coerceEmbedded(path.Index(i), value, s.Items)
			if err != nil {
				return nil, err
			}
			unknown = append(unknown, more...)
		}
	}
	return unknown, nil
}

func coerceResource(path *field.Path, x map[string]any) (unknown []string, err error) {
	for _, name := range []string{"apiVersion", "kind"} {
		if value, ok := x[name]; ok {
			if _, ok := value.(string); !ok {
				return nil, field.Invalid(path.Child(name), value, "must be a string")
			}
		}
	}
	metadata, unknown, err := readMetadata(path, x)
	if err != nil {
		return nil, field.Invalid(path.Child("metadata"), x["metadata"], err.Error())
	}
	if metadata != nil {
		x["metadata"] = metadata
	}
	return unknown, nil
}

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

// publish returns the schema that clients see, with the fields that every object has.
//
// Source: k8s.io/apiextensions-apiserver pkg/controller/openapi/builder/builder.go buildKubeNative.
func (s *Schema) publish(kind schema.GroupVersionKind) *spec.Schema {
	published := s.structural.DeepCopy().Unfold().ToKubeOpenAPI()
	eachSchema(published, func(s *spec.Schema) {
		if keys, ok := s.Extensions["x-kubernetes-list-map-keys"].([]string); ok {
			s.AddExtension("x-kubernetes-list-map-keys", anySlice(keys))
		}
		if embedded, _ := s.Extensions.GetBool("x-kubernetes-embedded-resource"); embedded {
			addObjectFields(s)
			for _, name := range []string{"kind", "apiVersion"} {
				if !slices.Contains(s.Required, name) {
					s.Required = append(s.Required, name)
				}
			}
		}
	})
	addObjectFields(published)
	published.AddExtension("x-kubernetes-group-version-kind", []any{
		map[string]any{"group": kind.Group, "version": kind.Version, "kind": kind.Kind},
	})
	return published
}

// addObjectFields adds the fields that every object has, whatever its schema says.
func addObjectFields(s *spec.Schema) {
	docs := metav1.TypeMeta{}.SwaggerDoc()
	for _, name := range []string{"apiVersion", "kind"} {
		s.SetProperty(name, *spec.StringProperty().WithDescription(docs[name]))
	}
	metadata := spec.Schema{}
	metadata.WithAllOf(*spec.RefSchema(openapi.ObjectMetaRef)).WithDescription(
		metav1.PartialObjectMetadata{}.SwaggerDoc()["metadata"],
	)
	s.SetProperty("metadata", metadata)
}

// modelName returns the name of a kind's schema in the documents of its group version.
func modelName(kind schema.GroupVersionKind) string {
	parts := strings.Split(kind.Group, ".")
	slices.Reverse(parts)
	return strings.Join(append(parts, kind.Version, kind.Kind), ".")
}

// typeConverter returns a converter of objects of all versions of a kind to typed values, by their schemas.
func typeConverter(published map[schema.GroupVersionKind]*spec.Schema) (managedfields.TypeConverter, error) {
	schemas := openapi.MetadataSchemas()
	for kind, s := range published {
		schemas[modelName(kind)] = s
	}
	return managedfields.NewTypeConverter(schemas, false)
}
