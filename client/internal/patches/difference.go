package patches

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Content returns obj as its JSON says it, with numbers as text.
func Content(obj any) (content map[string]any, err error) {
	err = throughJSON(obj, &content)
	return content, err
}

// throughJSON encodes from, and decodes that into into.
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

// Difference returns the patch between two contents: what is null in it is to be removed.
func Difference(from, to map[string]any) map[string]any {
	patch := map[string]any{}
	for name, old := range from {
		if to[name] == nil && old != nil {
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

// OnlyAt makes a patch depend on the UID and the resource version of base, where they are known.
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
