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

// plan describes how to decode a Go type of the API. It is made once per type, from the same struct tags as the
// generated decoders.
type plan struct {
	typ reflect.Type
	// fields has the fields by number. Fields without a shape are not decoded.
	fields []field
	// opaque is true for types that only their own Unmarshal can decode: times, quantities, named slices.
	opaque bool
	// isTime is true for metav1.Time, the most frequent opaque type.
	isTime bool
}

// shape is the kind of Go value in a field.
type shape uint8

const (
	shapeNone shape = iota
	shapeString
	shapeInt32
	shapeInt64
	shapeUint8
	shapeUint32
	shapeUint64
	shapeBool
	shapeBytes
	shapeMessage // A struct in place.
	shapePointer
	shapeStrings // A map of strings to strings.
	shapeMap
	shapeSlice
)

// field describes how to decode a field of a message, or a part of such a field: an element, a target, a key or a
// value.
type field struct {
	// offset is the position of the field in its struct.
	offset uintptr
	// size is the size of a value of the type.
	size  uintptr
	shape shape
	// wire is the wire type of the field's records. A pointer has that of its target, and a slice that of its elements.
	wire uint8
	// site is the index of the field's statistics in [Decoder].sites.
	site int
	// kind is the number of the field's type; see [kindKey]. Parts of the same kind can replace one another.
	kind uint64
	// message is the plan of the type.
	message *lazyPlan
	// holds is true if a message has pointers, slices or maps, so that sharing it saves memory.
	holds bool
	typ   reflect.Type
	// element is the element of a slice, the target of a pointer, or the value of a map. key is the key of a map.
	element, key *field
}

// kindKey identifies a kind. An object's own metadata and that of a template within it differ in kind: only the first
// is decoded without managed fields.
type kindKey struct {
	typ            reflect.Type
	objectMetadata bool
}

var (
	kindCount atomic.Uint64
	kinds     sync.Map // kindKey → uint64
)

func kindOf(key kindKey) uint64 {
	if known, ok := kinds.Load(key); ok {
		return known.(uint64)
	}
	made, _ := kinds.LoadOrStore(key, kindCount.Add(1))
	return made.(uint64)
}

// lazyPlan is a plan that is made when first needed, because types may contain themselves.
type lazyPlan struct {
	kindKey
	made atomic.Pointer[plan]
}

func (l *lazyPlan) get() *plan {
	if p := l.made.Load(); p != nil {
		return p
	}
	p := planOf(l.typ)
	if l.objectMetadata {
		p = metadataPlan()
	}
	l.made.Store(p)
	return p
}

// fieldCount counts the fields of all plans. The count at which a field is made is the index of its site.
var fieldCount atomic.Int32

// plans caches the plan of each type, as encoding/json does. A plan depends only on the type.
var plans sync.Map // reflect.Type → *plan

var (
	metaTime      = reflect.TypeFor[metav1.Time]()
	localTime     = reflect.TypeFor[time.Time]() // It has a pointer, but to one time zone that all times share.
	typeMeta      = reflect.TypeFor[metav1.TypeMeta]()
	objectMeta    = reflect.TypeFor[metav1.ObjectMeta]()
	selfDecoding  = reflect.TypeFor[interface{ Unmarshal([]byte) error }]()
	stringsByName = reflect.TypeFor[map[string]string]()
)

// managedFieldsNumber is the number of the managed fields in ObjectMeta.
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
	p := &plan{typ: t, opaque: t.Kind() != reflect.Struct || !strings.HasPrefix(t.PkgPath(), "k8s.io/")}
	if p.opaque {
		return p
	}
	object := false
	for i := range t.NumField() {
		f := t.Field(i)
		if f.Type == typeMeta {
			object = true
			continue // Not encoded.
		}
		number, ok := numberOf(f)
		if !ok {
			p.opaque, p.fields = true, nil
			break
		}
		made, ok := fieldOf(kindKey{f.Type, object && f.Type == objectMeta})
		if !ok {
			p.opaque, p.fields = true, nil
			break
		}
		made.offset = f.Offset
		for len(p.fields) <= number {
			p.fields = append(p.fields, field{})
		}
		p.fields[number] = made
	}
	p.isTime = t == metaTime
	return p
}

// metadataPlan is the plan of an object's metadata.
var metadataPlan = sync.OnceValue(func() *plan {
	p := newPlan(objectMeta)
	p.fields[managedFieldsNumber] = field{}
	return p
})

// numberOf returns the number in a tag like `protobuf:"bytes,1,opt,name=metadata"`.
func numberOf(f reflect.StructField) (int, bool) {
	parts := strings.Split(f.Tag.Get("protobuf"), ",")
	if len(parts) < 2 || !f.IsExported() {
		return 0, false
	}
	number, err := strconv.Atoi(parts[1])
	return number, err == nil && number > 0 && number < 64
}

// fieldOf returns how to decode a type. ok is false if only the Unmarshal of the message that contains it can decode
// it.
func fieldOf(k kindKey) (f field, ok bool) {
	t := k.typ
	f = field{typ: t, size: t.Size(), kind: kindOf(k), site: int(fieldCount.Add(1)), wire: wireBytes}
	if t.Kind() != reflect.Pointer && reflect.PointerTo(t).Implements(selfDecoding) {
		f.shape, f.message, f.holds = shapeMessage, &lazyPlan{kindKey: k}, refers(t)
		return f, true
	}
	switch t.Kind() {
	case reflect.String:
		f.shape = shapeString
	case reflect.Int, reflect.Int32, reflect.Int64:
		f.shape, f.wire = shapeInt64, wireVarint
		if t.Size() == 4 {
			f.shape = shapeInt32
		}
	case reflect.Uint8:
		f.shape, f.wire = shapeUint8, wireVarint
	case reflect.Uint32:
		f.shape, f.wire = shapeUint32, wireVarint
	case reflect.Uint64:
		f.shape, f.wire = shapeUint64, wireVarint
	case reflect.Bool:
		f.shape, f.wire = shapeBool, wireVarint
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			f.shape = shapeBytes
			break
		}
		f.shape = shapeSlice
		ok = f.part(&f.element, t.Elem())
		f.wire = f.element.wire
		return f, ok
	case reflect.Pointer:
		f.shape = shapePointer
		ok = f.part(&f.element, t.Elem())
		f.wire = f.element.wire
		return f, ok
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
	made, ok := fieldOf(kindKey{typ: t})
	*into = &made
	return ok
}

// refers reports whether values of a type refer to memory outside themselves. Strings do not count: they are shared
// anyway.
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
