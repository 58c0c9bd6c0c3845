package patches

import (
	"cmp"
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"sync"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// typedDifference returns the patch between two values of one Go type. The result is that of [Difference] between their
// [Content], but only what differs is encoded. ok is false if the types differ, or if the JSON of the type does not
// follow from its fields alone.
func typedDifference(from, to any) (patch map[string]any, ok bool) {
	before, after := reflect.ValueOf(from), reflect.ValueOf(to)
	t := before.Type()
	if t != after.Type() || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return nil, false
	}
	if before.IsNil() || after.IsNil() || encodesItself(t.Elem()) {
		return nil, false
	}
	if patch, ok = structDifference(before.Elem(), after.Elem()); patch == nil {
		patch = map[string]any{}
	}
	return patch, ok
}

// structDifference compares two structs field by field.
func structDifference(from, to reflect.Value) (patch map[string]any, ok bool) {
	s := structOf(from.Type())
	if !s.plain {
		return nil, false
	}
	for i := range s.fields {
		f := &s.fields[i]
		was, is := f.of(from), f.of(to)
		noWas, noIs := f.leftOut(was), f.leftOut(is)
		if noWas && noIs {
			continue
		}
		change, differs, ok := difference(was, is, noWas, noIs)
		if !ok {
			return nil, false
		}
		if differs {
			patch = put(patch, f.name, change)
		}
	}
	return patch, true
}

// textDifference is mapDifference for map[string]string, the type of labels, annotations and most data.
func textDifference(from, to map[string]string) (patch map[string]any) {
	for key := range from {
		if _, stays := to[key]; !stays {
			patch = put(patch, key, nil)
		}
	}
	for key, is := range to {
		if was, had := from[key]; !had || was != is {
			patch = put(patch, key, is)
		}
	}
	return patch
}

// mapDifference compares two maps key by key.
func mapDifference(from, to reflect.Value) (patch map[string]any, ok bool) {
	for keys := from.MapRange(); keys.Next(); {
		if key := keys.Key(); !to.MapIndex(key).IsValid() {
			patch = put(patch, key.String(), nil)
		}
	}
	for keys := to.MapRange(); keys.Next(); {
		was, is := from.MapIndex(keys.Key()), keys.Value()
		change, differs, ok := is.Interface(), !encodesAsNull(is), true
		if was.IsValid() {
			change, differs, ok = difference(was, is, false, false)
		}
		if !ok {
			return nil, false
		}
		if differs {
			patch = put(patch, keys.Key().String(), change)
		}
	}
	return patch, true
}

// put sets a field of a patch, which may be nil.
func put(patch map[string]any, name string, change any) map[string]any {
	if patch == nil {
		patch = map[string]any{}
	}
	patch[name] = change
	return patch
}

// difference compares two values of one type. noFrom and noTo report whether the JSON leaves out the value. differs
// reports whether change belongs in the patch.
func difference(from, to reflect.Value, noFrom, noTo bool) (change any, differs, ok bool) {
	switch {
	case noTo:
		return nil, !noFrom, true
	case encodesAsNull(to):
		return nil, !noFrom && !encodesAsNull(from), true
	case noFrom || encodesAsNull(from):
		return encodable(to), true, true
	}
	for from.Kind() == reflect.Pointer {
		if from, to = from.Elem(), to.Elem(); isNull(from) || isNull(to) {
			return nil, false, false // Pointers to pointers.
		}
	}
	if encodesItself(from.Type()) {
		return encodedDifference(from, to)
	}
	var patch map[string]any
	switch from.Kind() {
	case reflect.Struct:
		patch, ok = structDifference(from, to)
		return patch, len(patch) > 0, ok
	case reflect.Map:
		if before, is := from.Interface().(map[string]string); is {
			patch = textDifference(before, to.Interface().(map[string]string))
			return patch, len(patch) > 0, true
		}
		if from.Type().Key().Kind() != reflect.String || encodesItself(from.Type().Key()) {
			return nil, false, false
		}
		patch, ok = mapDifference(from, to)
		return patch, len(patch) > 0, ok
	case reflect.String:
		return to.String(), from.String() != to.String(), true
	case reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64, reflect.Uint,
		reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return encodable(to), !from.Equal(to), true
	}
	return encodedDifference(from, to)
}

// encodedDifference compares two values by their JSON.
func encodedDifference(from, to reflect.Value) (change any, differs, ok bool) {
	if reflect.DeepEqual(encodable(from), encodable(to)) {
		return nil, false, true
	}
	var was, is any
	if throughJSON(encodable(from), &was) != nil || throughJSON(encodable(to), &is) != nil {
		return nil, false, false
	}
	oldMap, wasMap := was.(map[string]any)
	newMap, isMap := is.(map[string]any)
	if wasMap && isMap {
		patch := Difference(oldMap, newMap)
		return patch, len(patch) > 0, true
	}
	return is, !reflect.DeepEqual(was, is), true
}

// encodable returns v for package json: as a pointer if possible, because a method may have a pointer receiver.
func encodable(v reflect.Value) any {
	if v.CanAddr() && v.Kind() != reflect.Pointer {
		return v.Addr().Interface()
	}
	return v.Interface()
}

// encodesAsNull reports whether the JSON of v is null. Some types encode values other than nil as null.
func encodesAsNull(v reflect.Value) bool {
	if isNull(v) {
		return true
	}
	t := v.Type()
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if !encodesItself(t) {
		return false
	}
	if when, is := v.Interface().(metav1.Time); is { // The most frequent of them.
		return when.IsZero()
	}
	data, err := json.Marshal(encodable(v))
	return err == nil && string(data) == "null"
}

func isNull(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Pointer, reflect.Map, reflect.Slice, reflect.Interface:
		return v.IsNil()
	}
	return false
}

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// encodesItself reports whether the JSON of the type t may not follow from its kind: because t has a method for it, or
// is [json.Number].
func encodesItself(t reflect.Type) bool {
	known, ok := methods.Load(t)
	if !ok {
		pointer := reflect.PointerTo(t) // It has the methods of t, too.
		known, _ = methods.LoadOrStore(t, t == reflect.TypeFor[json.Number]() || pointer.Implements(jsonMarshaler) ||
			pointer.Implements(textMarshaler))
	}
	return known.(bool)
}

// methods has the results of encodesItself.
var methods sync.Map // of reflect.Type to bool

// structure describes the JSON of a struct type.
type structure struct {
	fields []field
	// plain reports whether fields describe the JSON completely.
	plain bool
}

type field struct {
	name                string
	index               []int
	omitEmpty, omitZero bool
}

// of returns the field in the struct v.
func (f *field) of(v reflect.Value) reflect.Value {
	for _, i := range f.index {
		v = v.Field(i)
	}
	return v
}

// leftOut reports whether the JSON leaves out the field if it has the value v.
func (f *field) leftOut(v reflect.Value) bool {
	if f.omitEmpty {
		switch v.Kind() {
		case reflect.Array, reflect.Map, reflect.Slice, reflect.String:
			return v.Len() == 0
		case reflect.Struct:
		default:
			return v.IsZero()
		}
	}
	if !f.omitZero {
		return false
	}
	if !v.CanAddr() {
		addressable := reflect.New(v.Type()).Elem()
		addressable.Set(v)
		v = addressable
	}
	if zero, is := encodable(v).(interface{ IsZero() bool }); is {
		return isNull(v) || zero.IsZero()
	}
	return v.IsZero()
}

// structures has the results of structOf.
var structures sync.Map // of reflect.Type to *structure

// structOf returns the structure of the struct type t.
func structOf(t reflect.Type) *structure {
	if known, ok := structures.Load(t); ok {
		return known.(*structure)
	}
	s := &structure{plain: true}
	s.add(t, nil)
	names := map[string]bool{}
	for _, f := range s.fields {
		s.plain = s.plain && !names[f.name] // Package json has rules for which one wins.
		names[f.name] = true
	}
	known, _ := structures.LoadOrStore(t, s)
	return known.(*structure)
}

// add adds the fields of the struct type t, which is embedded at index.
func (s *structure) add(t reflect.Type, index []int) {
	for f := range t.Fields() {
		tag := f.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		at := append(slices.Clone(index), f.Index...)
		switch {
		case tag == "-":
		case f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct && !encodesItself(f.Type):
			s.add(f.Type, at)
		case f.Anonymous && (name == "" || !f.IsExported()):
			s.plain = false
		case !f.IsExported():
		default:
			all := strings.Split(options, ",")
			name = cmp.Or(name, f.Name)
			s.plain = s.plain && !slices.Contains(all, "string") && !strings.ContainsFunc(name, unusual) &&
				(f.Type.Kind() != reflect.Interface || !slices.Contains(all, "omitzero"))
			s.fields = append(s.fields, field{
				name: name, index: at, omitEmpty: slices.Contains(all, "omitempty"),
				omitZero: slices.Contains(all, "omitzero"),
			})
		}
	}
}

// unusual reports whether package json may reject a name with r.
func unusual(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-' }
