package customresource

import (
	"errors"
	"slices"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
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

// coerceResource coerces one embedded resource.
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
