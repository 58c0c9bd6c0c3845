package lean

import (
	"bytes"
	"hash/maphash"
	"reflect"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Unmarshal decodes a message into obj, a pointer to an empty object of the API, as its own Unmarshal does, but for
// the managed fields, which it leaves out. share lets it refer to parts that other objects have, too.
//
// Concurrency: safe.
//
// Errors: the message is written in an unusual way, or wrong, or nothing is known of the type. Its own Unmarshal
// knows which; obj is then not empty any more.
func (d *Decoder) Unmarshal(data []byte, obj any, share bool) error {
	v := reflect.ValueOf(obj).Elem()
	p := planOf(v.Type())
	if p.opaque {
		return errUnusual
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.share = share
	return d.message(p, data, v)
}

// message decodes into a struct.
func (d *Decoder) message(p *plan, data []byte, into reflect.Value) error {
	if p.opaque {
		return decodeItself(data, into)
	}
	var seen uint64
	for len(data) > 0 {
		r, size, err := next(data)
		if err != nil {
			return err
		}
		if r.number >= uint64(len(p.fields)) || p.fields[r.number].shape == shapeNone {
			data = data[size:]
			continue
		}
		f := &p.fields[r.number]
		if seen&(1<<r.number) != 0 {
			return errUnusual
		}
		seen |= 1 << r.number
		target := into.Field(f.index)
		switch f.shape {
		case shapeSlice, shapeMap, shapeStrings:
			length, count, err := run(data, r, size)
			if err != nil {
				return err
			}
			if err := d.shared(f, data[:length], count, target); err != nil {
				return err
			}
			size = length
		default:
			if err := d.single(f, r, target); err != nil {
				return err
			}
		}
		data = data[size:]
	}
	return nil
}

// decodeItself calls the type's own Unmarshal.
func decodeItself(data []byte, into reflect.Value) error {
	if into.Kind() == reflect.Slice {
		into.Set(reflect.MakeSlice(into.Type(), 0, 0)) // A list that is there is not nil, even when empty.
	}
	switch t := into.Addr().Interface().(type) {
	case *metav1.Time:
		return unmarshalTime(t, data)
	case interface{ Unmarshal([]byte) error }:
		return t.Unmarshal(data)
	}
	return errUnusual
}

// unmarshalTime is Time.Unmarshal without a message in between. Kubernetes keeps only the seconds.
func unmarshalTime(t *metav1.Time, data []byte) error {
	if len(data) == 0 {
		t.Time = time.Time{}
		return nil
	}
	var seconds int64
	seen := false
	for len(data) > 0 {
		r, size, err := next(data)
		if err != nil {
			return err
		}
		switch {
		case r.number == 1 && r.wire == wireVarint && !seen:
			seconds, seen = int64(r.value), true
		case r.number == 2 && r.wire == wireVarint:
		case r.number <= 2:
			return errUnusual
		}
		data = data[size:]
	}
	t.Time = time.Unix(seconds, 0).Local()
	return nil
}

// single decodes what stands in one record.
func (d *Decoder) single(f *field, r record, into reflect.Value) error {
	wire := uint8(wireBytes)
	if f.shape == shapeInt || f.shape == shapeUint || f.shape == shapeBool {
		wire = wireVarint
	}
	if f.shape != shapePointer && r.wire != wire {
		return errUnusual
	}
	switch f.shape {
	case shapeString:
		into.SetString(d.words.intern(r.content, d.sites.of(f.site)))
	case shapeInt:
		into.SetInt(truncated(f.typ, r.value))
	case shapeUint:
		into.SetUint(r.value)
	case shapeBool:
		into.SetBool(r.value != 0)
	case shapeBytes:
		into.SetBytes(append(make([]byte, 0, len(r.content)), r.content...))
	case shapeMessage:
		p := f.message()
		if !p.holds {
			return d.message(p, r.content, into)
		}
		return d.sharedRecord(f, r, into)
	case shapePointer:
		if r.wire == wireVarint {
			target := reflect.New(f.typ.Elem())
			if err := d.single(f.element, r, target.Elem()); err != nil {
				return err
			}
			into.Set(target)
			return nil
		}
		return d.sharedRecord(f, r, into)
	default:
		return errUnusual
	}
	return nil
}

// truncated is v as the generated decoders put it into an integer: bits that it does not hold are lost.
func truncated(t reflect.Type, v uint64) int64 {
	if t.Kind() == reflect.Int32 {
		return int64(int32(v))
	}
	return int64(v)
}

// sharedRecord is shared for a field of one record.
func (d *Decoder) sharedRecord(f *field, r record, into reflect.Value) error {
	if r.wire != wireBytes {
		return errUnusual
	}
	return d.shared(f, r.content, 1, into)
}

// shared decodes data into a field, or finds that it was decoded before.
func (d *Decoder) shared(f *field, data []byte, count int, into reflect.Value) error {
	if !d.share {
		return d.fresh(f, data, count, into)
	}
	hash := maphash.Bytes(d.words.seed, data) ^ f.id
	at := d.sites.of(f.site)
	if !at.worth(hash) {
		return d.fresh(f, data, count, into)
	}
	p := d.parts.find(hash)
	if p == nil {
		d.parts.put(hash, nil) // Remembered is only what comes twice.
		return d.fresh(f, data, count, into)
	}
	p.met = true
	at.found++
	if known := p.value; known != nil {
		if known.field != f.id || known.value.Type() != f.typ || !bytes.Equal(known.wire, data) {
			return d.fresh(f, data, count, into)
		}
		into.Set(known.value)
		return nil
	}
	if err := d.fresh(f, data, count, into); err != nil {
		return err
	}
	if p := d.parts.find(hash); p != nil { // It may have lost its place meanwhile.
		kept := reflect.New(f.typ).Elem()
		kept.Set(into)
		p.value = &part{field: f.id, wire: bytes.Clone(data), value: kept}
	}
	return nil
}

// fresh decodes data into a field.
func (d *Decoder) fresh(f *field, data []byte, count int, into reflect.Value) error {
	switch f.shape {
	case shapeMessage:
		return d.message(f.message(), data, into)
	case shapePointer:
		target := reflect.New(f.typ.Elem())
		into.Set(target)
		return d.target(f.element, data, target.Elem())
	case shapeSlice:
		return d.slice(f, data, count, into)
	case shapeStrings:
		return d.strings(f, data, count, into.Addr().Interface().(*map[string]string))
	default:
		return d.mapping(f, data, count, into)
	}
}

// target decodes what a pointer points to.
func (d *Decoder) target(f *field, data []byte, into reflect.Value) error {
	if f.shape == shapeMessage {
		return d.message(f.message(), data, into)
	}
	return d.single(f, record{wire: wireBytes, content: data}, into)
}

// slice decodes the elements of a repeated field.
func (d *Decoder) slice(f *field, data []byte, count int, into reflect.Value) error {
	s := reflect.MakeSlice(f.typ, count, count)
	for i := range count {
		r, size, err := next(data)
		if err != nil {
			return err
		}
		e := s.Index(i)
		if f.element.shape == shapeMessage {
			if r.wire != wireBytes {
				return errUnusual
			}
			err = d.message(f.element.message(), r.content, e)
		} else {
			err = d.single(f.element, r, e)
		}
		if err != nil {
			return err
		}
		data = data[size:]
	}
	into.Set(s)
	return nil
}

// strings decodes the entries of a map of strings.
func (d *Decoder) strings(f *field, data []byte, count int, into *map[string]string) error {
	m := make(map[string]string, count)
	for len(data) > 0 {
		r, size, err := next(data)
		if err != nil {
			return err
		}
		key, value, err := entry(r)
		if err != nil || (key != nil && key.wire != wireBytes) || (value != nil && value.wire != wireBytes) {
			return errUnusual
		}
		var k, v string
		if key != nil {
			k = d.words.intern(key.content, d.sites.of(f.key.site))
		}
		if value != nil {
			v = d.words.intern(value.content, d.sites.of(f.element.site))
		}
		m[k] = v
		data = data[size:]
	}
	*into = m
	return nil
}

// entry splits an entry of a map.
func entry(r record) (key, value *record, err error) {
	if r.wire != wireBytes {
		return nil, nil, errUnusual
	}
	data := r.content
	for len(data) > 0 {
		part, size, err := next(data)
		if err != nil {
			return nil, nil, err
		}
		switch {
		case part.number == 1 && key == nil:
			key = &part
		case part.number == 2 && value == nil:
			value = &part
		default:
			return nil, nil, errUnusual
		}
		data = data[size:]
	}
	return key, value, nil
}

// mapping decodes the entries of any other map.
func (d *Decoder) mapping(f *field, data []byte, count int, into reflect.Value) error {
	m := reflect.MakeMapWithSize(f.typ, count)
	for len(data) > 0 {
		r, size, err := next(data)
		if err != nil {
			return err
		}
		key, value, err := entry(r)
		if err != nil {
			return err
		}
		k, v := reflect.New(f.typ.Key()).Elem(), reflect.New(f.typ.Elem()).Elem()
		if v.Kind() == reflect.Slice {
			v.Set(reflect.MakeSlice(v.Type(), 0, 0)) // So is one in a map.
		}
		if key != nil {
			err = d.single(f.key, *key, k)
		}
		if value != nil && err == nil {
			err = d.single(f.element, *value, v)
		}
		if err != nil {
			return err
		}
		m.SetMapIndex(k, v)
		data = data[size:]
	}
	into.Set(m)
	return nil
}
