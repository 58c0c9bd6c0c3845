package admission

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// JSONPatchOp is an operation of a JSON patch.
//
// Source: RFC 6902.
type JSONPatchOp struct {
	// Operation is "add", "remove" or "replace", or another one of the RFC that needs no "from".
	Operation string
	// Path is a JSON pointer, such as /spec/replicas.
	Path string
	// Value is anything that can be encoded as JSON. It is left out if Operation is "remove".
	Value any
}

// MarshalJSON implements json.Marshaler.
func (o JSONPatchOp) MarshalJSON() ([]byte, error) {
	if o.Operation == "remove" {
		return json.Marshal(map[string]any{"op": o.Operation, "path": o.Path})
	}
	return json.Marshal(map[string]any{"op": o.Operation, "path": o.Path, "value": o.Value})
}

// decodeTree decodes JSON. Numbers stay as they are written.
func decodeTree(text []byte) (tree any, err error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&tree); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("something follows after the JSON value")
	}
	return tree, nil
}

func diffRaw(original, current []byte) ([]JSONPatchOp, error) {
	a, err := decodeTree(original)
	if err != nil {
		return nil, fmt.Errorf("decode the original: %w", err)
	}
	b, err := decodeTree(current)
	if err != nil {
		return nil, fmt.Errorf("decode the changed object: %w", err)
	}
	return diff("", a, b), nil
}

// diff returns the operations that turn a into b, both JSON trees at path. They apply one after the other. Keys are in
// order, so that equal changes give equal patches.
func diff(path string, a, b any) []JSONPatchOp {
	if reflect.DeepEqual(a, b) {
		return nil
	}
	switch a := a.(type) {
	case map[string]any:
		if b, ok := b.(map[string]any); ok {
			return diffObjects(path, a, b)
		}
	case []any:
		if b, ok := b.([]any); ok {
			return diffLists(path, a, b)
		}
	}
	return []JSONPatchOp{{"replace", path, b}}
}

func diffObjects(path string, a, b map[string]any) (ops []JSONPatchOp) {
	for _, key := range slices.Sorted(maps.Keys(a)) {
		below := path + "/" + escape(key)
		if changed, ok := b[key]; ok {
			ops = append(ops, diff(below, a[key], changed)...)
		} else {
			ops = append(ops, JSONPatchOp{"remove", below, nil})
		}
	}
	for _, key := range slices.Sorted(maps.Keys(b)) {
		if _, ok := a[key]; !ok {
			ops = append(ops, JSONPatchOp{"add", path + "/" + escape(key), b[key]})
		}
	}
	return ops
}

// diffLists keeps the elements that are equal at both ends. It changes those between them in place, pair by pair. Then
// it removes the remaining elements of a, from the end, or adds the remaining elements of b.
func diffLists(path string, a, b []any) (ops []JSONPatchOp) {
	front, back := equalEnds(a, b)
	a, b = a[front:len(a)-back], b[front:len(b)-back]
	at := func(i int) string { return path + "/" + strconv.Itoa(front+i) }
	pairs := min(len(a), len(b))
	for i := range pairs {
		ops = append(ops, diff(at(i), a[i], b[i])...)
	}
	for i := len(a) - 1; i >= pairs; i-- {
		ops = append(ops, JSONPatchOp{"remove", at(i), nil})
	}
	for i := pairs; i < len(b); i++ {
		ops = append(ops, JSONPatchOp{"add", at(i), b[i]})
	}
	return ops
}

// equalEnds returns how many elements at the front and at the back are equal in both lists. They do not overlap.
func equalEnds(a, b []any) (front, back int) {
	n := min(len(a), len(b))
	for front < n && reflect.DeepEqual(a[front], b[front]) {
		front++
	}
	for back < n-front && reflect.DeepEqual(a[len(a)-1-back], b[len(b)-1-back]) {
		back++
	}
	return front, back
}

// escape returns a key as a part of a JSON pointer.
func escape(key string) string {
	return strings.NewReplacer("~", "~0", "/", "~1").Replace(key)
}

// merge applies the change from before to after to raw, and returns the result. All three are JSON trees: before is
// what a Go type understood of raw, and after is what the Defaulter made of it. raw itself is not changed.
//
// Fields that the Go type does not have are in neither before nor after. So they stay, except where an object that
// contains them is removed or replaced by a value of another form.
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
		case known && reflect.DeepEqual(was, value): // the encoder added it; it was not changed
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

// mergeLists pairs each element of after with the element of before that it comes from, and merges the two. Equal
// elements at both ends are pairs. Between them, elements with the same name are pairs if every element has a name of
// its own; otherwise elements at the same place are.
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
