package client

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
)

// mergePatch returns the JSON merge patch (RFC 7386) from one encoded object to another. Numbers are compared as they
// are written, so that no integer is too large to be told from the next one.
func mergePatch(before, after []byte) ([]byte, error) {
	from, err := decodeExactly(before)
	if err != nil {
		return nil, err
	}
	to, err := decodeExactly(after)
	if err != nil {
		return nil, err
	}
	return json.Marshal(difference(from, to))
}

// decodeExactly decodes an object and keeps its numbers as text.
func decodeExactly(data []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var m map[string]any
	if err := d.Decode(&m); err != nil {
		return nil, fmt.Errorf("decode an object: %w", err)
	}
	return m, nil
}

// difference is the merge patch between two decoded objects: what is null in it is to be removed.
func difference(from, to map[string]any) map[string]any {
	patch := map[string]any{}
	for name := range from {
		if value, stays := to[name]; !stays || value == nil {
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
			patch[name] = difference(oldMap, newMap)
			continue
		}
		patch[name] = value
	}
	return patch
}
