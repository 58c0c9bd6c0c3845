package lean

import (
	"hash/maphash"
	"reflect"
	"time"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Unmarshal decodes a message into obj, a pointer to an empty object of the API, as its own Unmarshal does. It leaves
// out the managed fields. If share is true, obj may share parts with other objects.
//
// Concurrency: safe.
//
// Errors: the message is invalid, or not written the way Kubernetes writes it, or the type is unknown. The type's own
// Unmarshal finds out which. After an error obj may be partly decoded.
func (d *Decoder) Unmarshal(data []byte, obj any, share bool) error {
	v := reflect.ValueOf(obj)
	p := planOf(v.Type().Elem())
	if p.opaque {
		return errUnusual
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.share = share
	return d.message(p, data, v.UnsafePointer())
}

// message decodes into a struct.
func (d *Decoder) message(p *plan, data []byte, into unsafe.Pointer) error {
	if p.opaque {
		return p.decodeItself(data, into)
	}
	var seen uint64
	for at := 0; at < len(data); {
		var r record
		if at+1 < len(data) && data[at] < 0x80 && data[at+1] < 0x80 && data[at]&7 == wireBytes && data[at]>>3 != 0 {
			r.tag, r.start = uint64(data[at]), at+2
			if r.end = r.start + int(data[at+1]); r.end > len(data) {
				return errUnusual
			}
		} else if r = next(data, at); r.end == 0 {
			return errUnusual
		}
		number := r.number()
		if number >= uint64(len(p.fields)) || p.fields[number].shape == shapeNone {
			at = r.end
			continue
		}
		f := &p.fields[number]
		if seen&(1<<number) != 0 || r.wire() != f.wire {
			return errUnusual
		}
		seen |= 1 << number
		target := unsafe.Add(into, f.offset)
		if f.shape == shapeString {
			*(*string)(target) = d.words.intern(data[r.start:r.end], d.sites.of(f.site))
			at = r.end
			continue
		}
		if f.shape < shapeStrings {
			if err := d.single(f, r.value, data[r.start:r.end:r.end], target); err != nil {
				return err
			}
			at = r.end
			continue
		}
		end, count := run(data, r)
		if end == 0 {
			return errUnusual
		}
		if err := d.shared(f, data[at:end:end], count, target); err != nil {
			return err
		}
		at = end
	}
	return nil
}

// decodeItself calls the type's own Unmarshal.
func (p *plan) decodeItself(data []byte, into unsafe.Pointer) error {
	if p.isTime {
		return unmarshalTime((*metav1.Time)(into), data)
	}
	v := reflect.NewAt(p.typ, into)
	if p.typ.Kind() == reflect.Slice {
		v.Elem().Set(reflect.MakeSlice(p.typ, 0, 0)) // An empty list is not nil.
	}
	if t, ok := v.Interface().(interface{ Unmarshal([]byte) error }); ok {
		return t.Unmarshal(data)
	}
	return errUnusual
}

// unmarshalTime is Time.Unmarshal without an intermediate message. Kubernetes keeps only the seconds.
func unmarshalTime(t *metav1.Time, data []byte) error {
	if len(data) == 0 {
		t.Time = time.Time{}
		return nil
	}
	var seconds int64
	seen := false
	for at := 0; at < len(data); {
		r := next(data, at)
		switch {
		case r.end == 0:
			return errUnusual
		case r.tag == 1<<3|wireVarint && !seen:
			seconds, seen = int64(r.value), true
		case r.tag == 2<<3|wireVarint:
		case r.number() <= 2:
			return errUnusual
		}
		at = r.end
	}
	t.Time = time.Unix(seconds, 0).Local()
	return nil
}

// slice is the layout of a slice at run time.
type slice struct {
	elements unsafe.Pointer
	len, cap int
}

// single decodes a field that takes one record. value is the number in the record; content is the content of a
// length-delimited record.
func (d *Decoder) single(f *field, value uint64, content []byte, into unsafe.Pointer) error {
	switch f.shape {
	case shapeString:
		*(*string)(into) = d.words.intern(content, d.sites.of(f.site))
	case shapeInt32:
		*(*int32)(into) = int32(value) // Bits that do not fit are lost, as in the generated decoders.
	case shapeInt64:
		*(*int64)(into) = int64(value)
	case shapeUint8:
		*(*uint8)(into) = uint8(value)
	case shapeUint32:
		*(*uint32)(into) = uint32(value)
	case shapeUint64:
		*(*uint64)(into) = value
	case shapeBool:
		*(*bool)(into) = value != 0
	case shapeBytes:
		*(*[]byte)(into) = append(make([]byte, 0, len(content)), content...)
	case shapeMessage:
		if f.holds && len(content) > 0 {
			return d.shared(f, content, 1, into)
		}
		return d.message(f.message.get(), content, into)
	case shapePointer:
		if f.wire == wireBytes {
			return d.shared(f, content, 1, into)
		}
		target := reflect.New(f.element.typ).UnsafePointer()
		*(*unsafe.Pointer)(into) = target
		return d.single(f.element, value, nil, target)
	default:
		return errUnusual
	}
	return nil
}

// shared decodes data into a field, or takes the value from the table if the same data was decoded before.
func (d *Decoder) shared(f *field, data []byte, count int, into unsafe.Pointer) error {
	if !d.share {
		return d.fresh(f, data, count, into)
	}
	at := d.sites.of(f.site)
	if !at.worth() {
		return d.fresh(f, data, count, into)
	}
	hash := maphash.Bytes(d.words.seed, data) ^ f.kind*0x9E3779B97F4A7C15
	p := d.parts.find(hash)
	if p == nil {
		d.parts.put(hash, nil) // The table keeps a value only when it comes a second time.
		return d.fresh(f, data, count, into)
	}
	p.hash |= met
	at.found++
	if known := p.value; known != nil {
		if known.kind != f.kind || known.wire != string(data) { // Compares without a copy.
			return d.fresh(f, data, count, into)
		}
		known.load(f, count, into)
		return nil
	}
	if err := d.fresh(f, data, count, into); err != nil {
		return err
	}
	d.parts.keep(hash, &part{kind: f.kind, wire: string(data), value: f.store(into)})
	return nil
}

// store returns the value of a part for a field: what the field points to, or a copy of the struct in the field.
func (f *field) store(from unsafe.Pointer) unsafe.Pointer {
	if f.shape == shapeMessage {
		kept := reflect.New(f.typ)
		kept.Elem().Set(reflect.NewAt(f.typ, from).Elem())
		return kept.UnsafePointer()
	}
	return *(*unsafe.Pointer)(from) // A pointer, a map, or the elements of a slice.
}

// load sets a field to the value of a part.
func (p *part) load(f *field, count int, into unsafe.Pointer) {
	switch f.shape {
	case shapeMessage:
		reflect.NewAt(f.typ, into).Elem().Set(reflect.NewAt(f.typ, p.value).Elem())
	case shapeSlice:
		*(*slice)(into) = slice{p.value, count, count}
	default:
		*(*unsafe.Pointer)(into) = p.value
	}
}

// fresh decodes data into a field without the table.
func (d *Decoder) fresh(f *field, data []byte, count int, into unsafe.Pointer) error {
	switch f.shape {
	case shapeMessage:
		return d.message(f.message.get(), data, into)
	case shapePointer:
		target := reflect.New(f.element.typ).UnsafePointer()
		*(*unsafe.Pointer)(into) = target
		if f.element.shape == shapeMessage {
			return d.message(f.element.message.get(), data, target)
		}
		return d.single(f.element, 0, data, target)
	case shapeSlice:
		return d.slice(f, data, count, into)
	case shapeStrings:
		return d.strings(f, data, count, (*map[string]string)(into))
	default:
		return d.mapping(f, data, count, reflect.NewAt(f.typ, into).Elem())
	}
}

// slice decodes the elements of a repeated field.
func (d *Decoder) slice(f *field, data []byte, count int, into unsafe.Pointer) error {
	reflect.NewAt(f.typ, into).Elem().Grow(count) // MakeSlice would allocate a slice header, too.
	s := (*slice)(into)
	s.len, s.cap = count, count
	for i, at := 0, 0; at < len(data); i++ {
		r := next(data, at)
		if r.end == 0 || r.wire() != f.element.wire {
			return errUnusual
		}
		var err error
		element, content := unsafe.Add(s.elements, uintptr(i)*f.element.size), data[r.start:r.end:r.end]
		if f.element.shape == shapeMessage {
			err = d.message(f.element.message.get(), content, element)
		} else {
			err = d.single(f.element, r.value, content, element)
		}
		if err != nil {
			return err
		}
		at = r.end
	}
	return nil
}

// strings decodes the entries of a map of strings to strings.
func (d *Decoder) strings(f *field, data []byte, count int, into *map[string]string) error {
	m := make(map[string]string, count)
	for at := 0; at < len(data); {
		e, end := entry(data, at)
		if end == 0 || !e.key.fits(wireBytes) || !e.value.fits(wireBytes) {
			return errUnusual
		}
		k := d.words.intern(data[e.key.start:e.key.end], d.sites.of(f.key.site))
		m[k] = d.words.intern(data[e.value.start:e.value.end], d.sites.of(f.element.site))
		at = end
	}
	*into = m
	return nil
}

// mapEntry is one entry of a map. A key or a value that is missing on the wire is the zero record; it means the zero
// value.
type mapEntry struct{ key, value record }

func (r record) fits(wire uint8) bool { return r.tag == 0 || r.wire() == wire }

// entry reads the map entry at a position. Its end is 0 if the entry is unusual.
func entry(data []byte, at int) (e mapEntry, end int) {
	whole := next(data, at)
	if whole.end == 0 || whole.wire() != wireBytes {
		return e, 0
	}
	for at := whole.start; at < whole.end; {
		r := next(data[:whole.end], at)
		switch {
		case r.end == 0:
			return e, 0
		case r.number() == 1 && e.key.tag == 0:
			e.key = r
		case r.number() == 2 && e.value.tag == 0:
			e.value = r
		default:
			return e, 0
		}
		at = r.end
	}
	return e, whole.end
}

// mapping decodes the entries of a map of any other type.
func (d *Decoder) mapping(f *field, data []byte, count int, into reflect.Value) error {
	m := reflect.MakeMapWithSize(f.typ, count)
	k, v := reflect.New(f.key.typ), reflect.New(f.element.typ)
	for at := 0; at < len(data); {
		e, end := entry(data, at)
		if end == 0 || !e.key.fits(f.key.wire) || !e.value.fits(f.element.wire) {
			return errUnusual
		}
		k.Elem().SetZero()
		v.Elem().SetZero()
		if f.element.typ.Kind() == reflect.Slice {
			v.Elem().Set(reflect.MakeSlice(f.element.typ, 0, 0)) // An empty slice in a map is not nil either.
		}
		if e.key.tag != 0 {
			if err := d.single(f.key, e.key.value, data[e.key.start:e.key.end], k.UnsafePointer()); err != nil {
				return err
			}
		}
		if e.value.tag != 0 {
			content := data[e.value.start:e.value.end]
			if err := d.single(f.element, e.value.value, content, v.UnsafePointer()); err != nil {
				return err
			}
		}
		m.SetMapIndex(k.Elem(), v.Elem())
		at = end
	}
	into.Set(m)
	return nil
}
