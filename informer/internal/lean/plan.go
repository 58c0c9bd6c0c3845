package lean

import (
	"reflect"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// plan is how a Go type of the API is decoded. It is made once for a type, from the struct tags that the generated
// decoders are made from.
type plan struct {
	typ reflect.Type
	// fields has the fields by their number; those without a name are not decoded.
	fields []field
	// opaque says that only the type's own Unmarshal knows how: times, quantities, named slices.
	opaque bool
	// holds says that a value refers to memory of its own: then sharing it saves some.
	holds bool
	// id is mixed into the hash of what is decoded into the type.
	id uint64
}

// shape is what a field is made of.
type shape uint8

const (
	shapeNone shape = iota
	shapeString
	shapeInt
	shapeUint
	shapeBool
	shapeBytes
	shapeMessage // A struct in place.
	shapeStrings // A map of strings to strings.
	shapeMap
	shapeSlice
	shapePointer
)

// field is one field of a message, or what its elements, keys or values are.
type field struct {
	index int
	shape shape
	typ   reflect.Type
	// element is that of a slice, the target of a pointer, the value of a map; key the key of a map.
	element, key *field
	// message is the type's plan; made when first needed, as types may hold themselves.
	message func() *plan
	// id is mixed into the hash of what is decoded into the type. site numbers the field.
	id   uint64
	site int
}

// fieldCount numbers the fields of all plans.
var fieldCount atomic.Int32

// plans remembers the plan of each type, as encoding/json remembers its own: what is derived from a type is the same
// for all.
var plans sync.Map // reflect.Type → *plan

var (
	localTime     = reflect.TypeFor[time.Time]() // Points to a time zone, of which there is one.
	typeMeta      = reflect.TypeFor[metav1.TypeMeta]()
	objectMeta    = reflect.TypeFor[metav1.ObjectMeta]()
	selfDecoding  = reflect.TypeFor[interface{ Unmarshal([]byte) error }]()
	stringsByName = reflect.TypeFor[map[string]string]()
)

// managedFieldsNumber is the number of that field in ObjectMeta.
const managedFieldsNumber = 17

// planOf returns the plan of a struct, or of another type that decodes itself.
func planOf(t reflect.Type) *plan {
	if known, ok := plans.Load(t); ok {
		return known.(*plan)
	}
	made, _ := plans.LoadOrStore(t, newPlan(t))
	return made.(*plan)
}

func newPlan(t reflect.Type) *plan {
	p := &plan{typ: t, id: idOf(t), opaque: t.Kind() != reflect.Struct || !strings.HasPrefix(t.PkgPath(), "k8s.io/")}
	if p.opaque {
		p.holds = true
		return p
	}
	object := false
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Type == typeMeta {
			object = true
			continue // Not on the wire.
		}
		number, ok := numberOf(f)
		if !ok {
			p.opaque, p.fields = true, nil
			break
		}
		made, ok := fieldOf(f.Type)
		if !ok {
			p.opaque, p.fields = true, nil
			break
		}
		if object && f.Type == objectMeta {
			// Another id: what is shared must have been decoded the same way.
			made.message, made.id = sync.OnceValue(metadataPlan), made.id+1
		}
		made.index = i
		for len(p.fields) <= number {
			p.fields = append(p.fields, field{})
		}
		p.fields[number] = made
	}
	p.holds = refers(t)
	return p
}

// metadataPlan is that of the metadata of an object, as opposed to that of a template within one: without managed
// fields.
func metadataPlan() *plan {
	p := newPlan(objectMeta)
	p.fields[managedFieldsNumber] = field{}
	return p
}

// numberOf reads the tag `protobuf:"bytes,1,opt,name=metadata"`.
func numberOf(f reflect.StructField) (int, bool) {
	parts := strings.Split(f.Tag.Get("protobuf"), ",")
	if len(parts) < 2 || !f.IsExported() {
		return 0, false
	}
	number, err := strconv.Atoi(parts[1])
	return number, err == nil && number > 0 && number < 64
}

// fieldOf says how a type is decoded; false when only its message's own Unmarshal knows.
func fieldOf(t reflect.Type) (f field, ok bool) {
	f = field{typ: t, id: idOf(t), site: int(fieldCount.Add(1))}
	if t.Kind() != reflect.Pointer && reflect.PointerTo(t).Implements(selfDecoding) {
		f.shape, f.message = shapeMessage, sync.OnceValue(func() *plan { return planOf(t) })
		return f, true
	}
	switch t.Kind() {
	case reflect.String:
		f.shape = shapeString
	case reflect.Int, reflect.Int32, reflect.Int64:
		f.shape = shapeInt
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		f.shape = shapeUint
	case reflect.Bool:
		f.shape = shapeBool
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			f.shape = shapeBytes
			break
		}
		f.shape = shapeSlice
		return f, f.part(&f.element, t.Elem())
	case reflect.Pointer:
		f.shape = shapePointer
		return f, f.part(&f.element, t.Elem())
	case reflect.Map:
		f.shape = shapeMap
		if t == stringsByName {
			f.shape = shapeStrings
		}
		return f, f.part(&f.key, t.Key()) && f.part(&f.element, t.Elem())
	}
	return f, f.shape != shapeNone
}

func (*field) part(into **field, t reflect.Type) bool {
	made, ok := fieldOf(t)
	*into = &made
	return ok
}

// refers reports whether values of a type refer to memory outside themselves, strings not counted: those are kept
// once anyway.
func refers(t reflect.Type) bool {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface:
		return true
	case reflect.Struct:
		for i := range t.NumField() {
			if refers(t.Field(i).Type) && t.Field(i).Type != localTime {
				return true
			}
		}
	}
	return false
}

// idOf is a number for a type. Two types with one number would only share a place in the table.
func idOf(t reflect.Type) uint64 {
	const prime = 1099511628211
	h := uint64(14695981039346656037)
	for _, c := range []byte(t.PkgPath() + "." + t.String()) {
		h = (h ^ uint64(c)) * prime
	}
	return h
}
