package patches

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Between returns the JSON merge patch from base to obj.
func Between(base, obj any) ([]byte, error) {
	if patch, ok := typedDifference(base, obj); ok {
		return patch, nil
	}
	before, err := Content(base)
	if err != nil {
		return nil, fmt.Errorf("the base of a patch: %w", err)
	}
	after, err := Content(obj)
	if err != nil {
		return nil, fmt.Errorf("the object of a patch: %w", err)
	}
	return json.Marshal(Difference(before, after))
}

// Content returns the JSON of obj as a map. Numbers stay text, so that they are compared exactly.
func Content(obj any) (content map[string]any, err error) {
	err = throughJSON(obj, &content)
	return content, err
}

// throughJSON converts from to into by its JSON.
func throughJSON(from, into any) error {
	data, err := json.Marshal(from)
	if err != nil {
		return fmt.Errorf("encode an object: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	if err := d.Decode(into); err != nil {
		return fmt.Errorf("decode an object: %w", err)
	}
	return nil
}

// Difference returns the JSON merge patch between two contents. Null in a patch removes the field.
func Difference(from, to map[string]any) map[string]any {
	patch := map[string]any{}
	for name, old := range from {
		if value, stays := to[name]; value == nil && (old != nil || !stays) {
			patch[name] = nil
		}
	}
	for name, value := range to {
		old, was := from[name]
		if value == nil || (was && reflect.DeepEqual(old, value)) {
			continue
		}
		oldMap, wasMap := old.(map[string]any)
		newMap, isMap := value.(map[string]any)
		if wasMap && isMap {
			if changes := Difference(oldMap, newMap); len(changes) > 0 {
				patch[name] = changes
			}
			continue
		}
		patch[name] = value
	}
	return patch
}

// OnlyAt adds a precondition to a patch: the server refuses it unless the object has the UID and the resource version
// of base. An empty one is not checked.
func OnlyAt(base metav1.Object, patch map[string]any) {
	metadata := map[string]any{}
	if changes, is := patch["metadata"].(map[string]any); is {
		metadata = maps.Clone(changes)
	}
	if version := base.GetResourceVersion(); version != "" {
		metadata["resourceVersion"] = version
	}
	if uid := base.GetUID(); uid != "" {
		metadata["uid"] = uid
	}
	patch["metadata"] = metadata
}
