package conversion

import (
	"fmt"
	"maps"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// accept returns what the webhook made of in, with the metadata of in: only labels and annotations may be converted.
func accept(in *unstructured.Unstructured, raw runtime.RawExtension,
	to schema.GroupVersion,
) (*unstructured.Unstructured, error) {
	kind := in.GroupVersionKind()
	out := &unstructured.Unstructured{}
	if err := out.UnmarshalJSON(raw.Raw); err != nil {
		return nil, err
	}
	const wrong = "conversion webhook for %v returned invalid object at index 0: invalid %s (expected %v, received %v)"
	got := out.GroupVersionKind()
	switch {
	case got.GroupVersion() != to:
		return nil, fmt.Errorf(wrong, kind, "groupVersion", to, got.GroupVersion())
	case got.Kind != kind.Kind:
		return nil, fmt.Errorf(wrong, kind, "kind", kind.Kind, got.Kind)
	}
	for _, same := range []struct {
		what    string
		in, out any
	}{
		{"name", in.GetName(), out.GetName()},
		{"namespace", in.GetNamespace(), out.GetNamespace()},
		{"UID", in.GetUID(), out.GetUID()},
	} {
		if same.in != same.out {
			return nil, fmt.Errorf("conversion webhook for %v returned invalid object: must have the same %s: %v != %v",
				kind, same.what, same.in, same.out)
		}
	}
	if err := restoreMetadata(in, out); err != nil {
		return nil, fmt.Errorf("conversion webhook for %v returned invalid metadata: %w", kind, err)
	}
	return out, nil
}

// restoreMetadata replaces the metadata of out by that of in, but for labels and annotations.
func restoreMetadata(in, out *unstructured.Unstructured) error {
	value, ok := out.Object["metadata"]
	if !ok {
		return fmt.Errorf("missing metadata in converted object")
	}
	said, ok := value.(map[string]any)
	if !ok {
		return fmt.Errorf("invalid metadata of type %T in converted object", value)
	}
	original, _ := in.Object["metadata"].(map[string]any)
	restored := runtime.DeepCopyJSON(original)
	out.Object["metadata"] = restored
	for name, validate := range map[string]func(map[string]string, *field.Path) field.ErrorList{
		"labels": metavalidation.ValidateLabels, "annotations": apivalidation.ValidateAnnotations,
	} {
		value := said[name]
		if value == nil {
			delete(restored, name)
			continue
		}
		texts, err := stringsIn(name, value)
		if err != nil {
			return err
		}
		before, _ := stringsIn(name, original[name])
		path := field.NewPath("metadata", map[string]string{"labels": "labels", "annotations": "annotation"}[name])
		if errs := validate(texts, path); !maps.Equal(texts, before) && len(errs) > 0 {
			return errs.ToAggregate()
		}
		restored[name] = value
	}
	return nil
}

func stringsIn(name string, value any) (map[string]string, error) {
	m, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("invalid metadata.%s of type %T in converted object", name, value)
	}
	texts := make(map[string]string, len(m))
	for k, v := range m {
		text, ok := v.(string)
		if !ok {
			return nil, fmt.Errorf("metadata.%s[%s] must be a string, but is %T in converted object", name, k, v)
		}
		texts[k] = text
	}
	return texts, nil
}
