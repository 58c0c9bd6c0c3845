package customresource

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/flyball-dev/flyball/localapi/internal/openapi"
)

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
