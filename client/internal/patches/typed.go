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

// typedDifference returns the patch between two values of one Go type. It says the same as [Difference] between their
// [Content], but only what differs is encoded. ok is false if the types differ, or if the JSON of the type does not
// follow from its fields alone.
func typedDifference(from, to any) (patch []byte, ok bool) {
	before, after := reflect.ValueOf(from), reflect.ValueOf(to)
	t := before.Type()
	if t != after.Type() || t.Kind() != reflect.Pointer || t.Elem().Kind() != reflect.Struct {
		return nil, false
	}
	if before.IsNil() || after.IsNil() || encodesItself(t.Elem()) {
		return nil, false
	}
	w := writer{text: append(make([]byte, 0, 128), '{')}
	ok = w.structs(before.Elem(), after.Elem())
	return append(w.text, '}'), ok
}

// writer writes a JSON merge patch. Its methods return false if the difference cannot be told from the Go values.
type writer struct {
	text []byte
	// around has the names of the fields around the next one, the outermost first. The objects of the first begun of
	// them are in text: an object is begun when something in it differs.
	around []string
	begun  int
}

// set writes a field. nil removes it.
func (w *writer) set(name string, value any) (ok bool) {
	encoded, err := json.Marshal(value)
	if err != nil {
		return false
	}
	for ; w.begun < len(w.around); w.begun++ {
		w.name(w.around[w.begun])
		w.text = append(w.text, '{')
	}
	w.name(name)
	w.text = append(w.text, encoded...)
	return true
}

// name writes the name of a field.
func (w *writer) name(name string) {
	if last := len(w.text) - 1; w.text[last] != '{' {
		w.text = append(w.text, ',')
	}
	if strings.ContainsFunc(name, unusual) {
		encoded, _ := json.Marshal(name) // A string can always be encoded.
		w.text = append(w.text, encoded...)
	} else {
		w.text = append(append(append(w.text, '"'), name...), '"')
	}
	w.text = append(w.text, ':')
}

// within writes a field that is an object. f writes its fields.
func (w *writer) within(name string, f func(from, to reflect.Value) bool, from, to reflect.Value) (ok bool) {
	w.around = append(w.around, name)
	ok = f(from, to)
	w.around = w.around[:len(w.around)-1]
	if w.begun > len(w.around) {
		w.begun--
		w.text = append(w.text, '}')
	}
	return ok
}

// structs compares two structs field by field.
func (w *writer) structs(from, to reflect.Value) (ok bool) {
	s := structOf(from.Type())
	if !s.plain {
		return false
	}
	for i := range s.fields {
		f := &s.fields[i]
		was, is := f.of(from), f.of(to)
		noWas, noIs := f.leftOut(was), f.leftOut(is)
		if noWas && noIs {
			continue
		}
		if !w.values(f.name, was, is, noWas, noIs) {
			return false
		}
	}
	return true
}

// texts is maps for map[string]string, the type of labels, annotations and most data.
func (w *writer) texts(from, to map[string]string) (ok bool) {
	var changed []string
	for key := range from {
		if _, stays := to[key]; !stays {
			changed = append(changed, key)
		}
	}
	for key, is := range to {
		if was, had := from[key]; !had || was != is {
			changed = append(changed, key)
		}
	}
	slices.Sort(changed)
	for _, key := range changed {
		var value any
		if is, stays := to[key]; stays {
			value = is
		}
		if !w.set(key, value) {
			return false
		}
	}
	return true
}

// maps compares two maps key by key.
func (w *writer) maps(from, to reflect.Value) (ok bool) {
	if before, is := from.Interface().(map[string]string); is {
		return w.texts(before, to.Interface().(map[string]string))
	}
	if from.Type().Key().Kind() != reflect.String || encodesItself(from.Type().Key()) {
		return false
	}
	keys := slices.Concat(from.MapKeys(), to.MapKeys())
	order := func(a, b reflect.Value) int { return strings.Compare(a.String(), b.String()) }
	slices.SortFunc(keys, order)
	for _, key := range slices.CompactFunc(keys, reflect.Value.Equal) {
		was, is := from.MapIndex(key), to.MapIndex(key)
		if !w.values(key.String(), was, is, !was.IsValid(), !is.IsValid()) {
			return false
		}
	}
	return true
}

// values compares two values of one type. noFrom and noTo report whether the JSON leaves out the value.
func (w *writer) values(name string, from, to reflect.Value, noFrom, noTo bool) (ok bool) {
	switch {
	case noTo:
		return noFrom || w.set(name, nil)
	case encodesAsNull(to):
		return noFrom || encodesAsNull(from) || w.set(name, nil)
	case noFrom || encodesAsNull(from):
		return w.set(name, encodable(to))
	}
	for from.Kind() == reflect.Pointer {
		if from, to = from.Elem(), to.Elem(); isNull(from) || isNull(to) {
			return false // Pointers to pointers.
		}
	}
	if encodesItself(from.Type()) {
		return w.encoded(name, from, to)
	}
	switch from.Kind() {
	case reflect.Struct:
		return w.within(name, w.structs, from, to)
	case reflect.Map:
		return w.within(name, w.maps, from, to)
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uintptr:
		return from.Equal(to) || w.set(name, encodable(to))
	}
	return w.encoded(name, from, to)
}

// encoded compares two values by their JSON.
func (w *writer) encoded(name string, from, to reflect.Value) (ok bool) {
	if reflect.DeepEqual(encodable(from), encodable(to)) {
		return true
	}
	var was, is any
	if throughJSON(encodable(from), &was) != nil || throughJSON(encodable(to), &is) != nil {
		return false
	}
	oldMap, wasMap := was.(map[string]any)
	newMap, isMap := is.(map[string]any)
	if wasMap && isMap {
		patch := Difference(oldMap, newMap)
		return len(patch) == 0 || w.set(name, patch)
	}
	return reflect.DeepEqual(was, is) || w.set(name, is)
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

// unusual reports whether package json may reject a name with r, or write r in another way.
func unusual(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '_' && r != '-' }
