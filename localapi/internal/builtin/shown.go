package builtin

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/util/diff"
)

// shown returns v as the real server prints it in an error. The real server's internal types have the fields of v1 in
// the same order, but no JSON names. So nothing is left out and every field has its Go name. Types of metav1 have no
// internal twin and keep their names.
func shown(v any) json.RawMessage {
	var out bytes.Buffer
	show(&out, reflect.ValueOf(v))
	return out.Bytes()
}

// shownDiff returns the difference between two values as the real server prints it.
func shownDiff(a, b any) string { return diff.Diff(shown(a), shown(b)) }

func show(out *bytes.Buffer, v reflect.Value) {
	switch {
	case !v.IsValid() || (nilable(v) && v.IsNil()):
		out.WriteString("null")
	case named(v):
		showNamed(out, v)
	case v.Kind() == reflect.Pointer:
		show(out, v.Elem())
	case v.Kind() == reflect.Struct:
		out.WriteByte('{')
		showFields(out, v)
		out.WriteByte('}')
	default: // a slice: named has handled everything else
		out.WriteByte('[')
		for i := range v.Len() {
			separate(out)
			show(out, v.Index(i))
		}
		out.WriteByte(']')
	}
}

func nilable(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface:
		return true
	}
	return false
}

// named reports whether a value prints the same in all versions: it prints itself, belongs to metav1, or contains no
// fields of ours.
func named(v reflect.Value) bool {
	t := v.Type()
	if _, ok := v.Interface().(json.Marshaler); ok || strings.HasSuffix(t.PkgPath(), "/meta/v1") {
		return true
	}
	switch t.Kind() {
	case reflect.Pointer, reflect.Struct:
		return false
	case reflect.Slice:
		return t.Elem().Kind() == reflect.Uint8
	}
	return true
}

func showNamed(out *bytes.Buffer, v reflect.Value) {
	text, err := json.Marshal(v.Interface())
	if err != nil { // API types always marshal
		text = []byte("null")
	}
	out.Write(text)
}

// showFields writes the fields of a struct. Those of an embedded struct are written in its place.
func showFields(out *bytes.Buffer, v reflect.Value) {
	for i := range v.NumField() {
		field := v.Type().Field(i)
		if !field.Anonymous {
			separate(out)
			showNamed(out, reflect.ValueOf(field.Name))
			out.WriteByte(':')
			show(out, v.Field(i))
			continue
		}
		if !named(v.Field(i)) {
			showFields(out, v.Field(i))
			continue
		}
		var inner bytes.Buffer
		showNamed(&inner, v.Field(i))
		if text := bytes.Trim(inner.Bytes(), "{}"); len(text) > 0 {
			separate(out)
			out.Write(inner.Bytes()[1 : inner.Len()-1])
		}
	}
}

// separate writes a comma, unless the next value is the first of its list.
func separate(out *bytes.Buffer) {
	if text := out.Bytes(); len(text) > 0 && text[len(text)-1] != '{' && text[len(text)-1] != '[' {
		out.WriteByte(',')
	}
}
