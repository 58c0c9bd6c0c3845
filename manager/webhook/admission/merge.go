package admission

import (
	"maps"
	"reflect"
)

// merge returns raw with the change from before to after, and leaves all else of raw as it is. All are JSON trees:
// before is what a Go type understood of raw, after is what it became. raw itself is not changed.
//
// What the Go type does not have is in neither before nor after. So no change touches it, except where a parent of it
// is removed or replaced by a value of another form.
func merge(raw, before, after any) any {
	if reflect.DeepEqual(before, after) {
		return raw
	}
	switch after := after.(type) {
	case map[string]any:
		b, isObject := before.(map[string]any)
		if r, ok := raw.(map[string]any); ok && isObject {
			return mergeObjects(r, b, after)
		}
	case []any:
		b, isList := before.([]any)
		if r, ok := raw.([]any); ok && isList && len(r) == len(b) {
			return mergeLists(r, b, after)
		}
	}
	return after
}

func mergeObjects(raw, before, after map[string]any) map[string]any {
	merged := maps.Clone(raw)
	for key, value := range after {
		was, known := before[key]
		now, present := raw[key]
		switch {
		case known && present:
			merged[key] = merge(now, was, value)
		case known && reflect.DeepEqual(was, value): // the encoder adds it; nobody changed it
		default:
			merged[key] = value
		}
	}
	for key := range before {
		if _, kept := after[key]; !kept {
			delete(merged, key)
		}
	}
	return merged
}

// mergeLists finds for each element of after the element of before that it was, and merges the two. It pairs equal
// elements at both ends; between them, elements with the same name if they have names; else those at the same place.
func mergeLists(raw, before, after []any) []any {
	front, back := equalEnds(before, after)
	merged := make([]any, 0, len(after))
	merged = append(merged, raw[:front]...)
	middle := before[front : len(before)-back]
	byName := namesOf(middle)
	wanted := after[front : len(after)-back]
	if namesOf(wanted) == nil {
		byName = nil
	}
	for i, element := range wanted {
		was, ok := i, i < len(middle)
		if byName != nil {
			was, ok = byName[nameOf(element)]
		}
		if !ok {
			merged = append(merged, element)
			continue
		}
		merged = append(merged, merge(raw[front+was], middle[was], element))
	}
	return append(merged, raw[len(raw)-back:]...)
}

// namesOf returns the places of the elements by name, or nil unless every element is an object with a name of its own.
func namesOf(list []any) map[string]int {
	places := make(map[string]int, len(list))
	for i, element := range list {
		name := nameOf(element)
		if _, taken := places[name]; taken || name == "" {
			return nil
		}
		places[name] = i
	}
	return places
}

func nameOf(element any) string {
	object, _ := element.(map[string]any)
	name, _ := object["name"].(string)
	return name
}
