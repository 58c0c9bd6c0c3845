package jsonpatch

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// document is a document between two operations. Its values have the types that encoding/json decodes into.
type document struct {
	root    any
	copied  int // bytes
	shifted int // elements
}

// missing has the library's message for each operation on a place that does not exist.
var missing = map[string]string{
	"add": `doc is missing path: "%s"`, "remove": `doc is missing path: "%s"`, "replace": "doc is missing path: %s",
	"test": "is missing path: %s",
}

func (d *document) apply(o operation) error {
	move := o.Op == "move" || o.Op == "copy"
	switch {
	case missing[o.Op] == "" && !move:
		//lint:ignore ST1005 The library's words.
		return fmt.Errorf("Unexpected kind: %s", cmp.Or(o.Op, "unknown"))
	case move && o.From == nil:
		return fmt.Errorf("%s operation failed to decode from: %w", o.Op, errMissing)
	case o.Path == nil:
		return fmt.Errorf("%s operation failed to decode path: %w", o.Op, errMissing)
	case o.Op == "move":
		return d.move(*o.From, *o.Path)
	case o.Op == "copy":
		return d.copy(*o.From, *o.Path)
	}
	var value any
	if len(o.Value) > 0 {
		var err error
		if value, err = decode(o.Value); err != nil {
			return err
		}
	}
	if *o.Path == "" && (o.Op == "replace" || o.Op == "test") {
		return d.whole(o.Op, value)
	}
	at, ok := d.find(*o.Path)
	if !ok {
		return fmt.Errorf("%s operation does not apply: "+missing[o.Op]+": %w", o.Op, *o.Path, errMissing)
	}
	var err error
	switch old, absent := at.get(); o.Op {
	case "add":
		err = d.add(at, value)
	case "remove":
		err = d.remove(at)
	case "replace":
		if absent != nil {
			return fmt.Errorf("replace operation does not apply: doc is missing key: %s: %w", *o.Path, errMissing)
		}
		at.set(value)
	case "test":
		if err = absent; err == nil {
			return equal(*o.Path, old, value)
		}
	}
	if err != nil {
		return fmt.Errorf("error in %s for path: '%s': %w", o.Op, *o.Path, err)
	}
	return nil
}

// whole replaces the document, or compares it.
func (d *document) whole(op string, value any) error {
	if op == "test" {
		return equal("", d.root, value)
	}
	switch value.(type) {
	case map[string]any, []any:
		d.root = value
		return nil
	}
	return errors.New("replace operation value must be object or array")
}

func equal(path string, old, value any) error {
	if reflect.DeepEqual(old, value) {
		return nil
	}
	return fmt.Errorf("testing value %s failed: test failed", path)
}

func (d *document) move(from, to string) error {
	source, ok := d.find(from)
	if !ok {
		return fmt.Errorf("move operation does not apply: doc is missing from path: %s: %w", from, errMissing)
	}
	value, err := source.get()
	if err == nil {
		err = d.remove(source)
	}
	if err != nil {
		return fmt.Errorf("error in move for path: '%s': %w", source.key, err)
	}
	return d.put("move", to, value)
}

func (d *document) copy(from, to string) error {
	source, ok := d.find(from)
	if !ok {
		return fmt.Errorf("copy operation does not apply: doc is missing from path: %s: %w", from, errMissing)
	}
	value, err := source.get()
	if err != nil {
		return fmt.Errorf("error in copy for from: '%s': %w", from, err)
	}
	data, err := encode(value)
	if err != nil {
		return err
	}
	if d.copied += len(data); d.copied > maxCopies {
		//lint:ignore ST1005 The library's words.
		return fmt.Errorf("Unable to complete the copy, the accumulated size increase of copy is %d, "+
			"exceeding the limit %d", d.copied, maxCopies)
	}
	if value, err = decode(data); err != nil {
		return err
	}
	return d.put("copy", to, value)
}

// put adds what an operation has moved or copied.
func (d *document) put(op, to string, value any) error {
	target, ok := d.find(to)
	if !ok {
		return fmt.Errorf("%s operation does not apply: doc is missing destination path: %s: %w", op, to, errMissing)
	}
	err := d.add(target, value)
	switch {
	case err == nil:
		return nil
	case op == "copy":
		return fmt.Errorf("error while adding value during copy: %w", err)
	}
	return fmt.Errorf("error in %s for path: '%s': %w", op, to, err)
}

// place is a field of an object, or an element of a list. It need not exist.
type place struct {
	in    any // a map[string]any or a []any
	key   string
	store func(list []any) // puts a list that has grown or shrunk where in was
}

var unescape = strings.NewReplacer("~1", "/", "~0", "~")

// find follows a JSON pointer. It reports false if what should hold the place is no object and no list.
func (d *document) find(pointer string) (place, bool) {
	_, pointer, ok := strings.Cut(pointer, "/") // like the library, which does not look at what is before the slash
	if !ok {
		return place{}, false
	}
	p := place{in: d.root, store: func(list []any) { d.root = list }}
	for {
		var more bool
		p.key, pointer, more = strings.Cut(pointer, "/")
		p.key = unescape.Replace(p.key)
		if !more {
			return p, true
		}
		next, _ := p.get() // nil if it fails
		switch next.(type) {
		case map[string]any, []any:
		default:
			return place{}, false
		}
		above := p
		p = place{in: next, store: func(list []any) { above.set(list) }}
	}
}

// get returns the value at the place: nil if an object does not have the field.
func (p place) get() (any, error) {
	if fields, ok := p.in.(map[string]any); ok {
		return fields[p.key], nil
	}
	list := p.in.([]any)
	i, err := index(p.key, len(list))
	if err != nil {
		return nil, err
	}
	return list[i], nil
}

// set sets a value at a place where get returns one.
func (p place) set(value any) {
	if fields, ok := p.in.(map[string]any); ok {
		fields[p.key] = value
		return
	}
	list := p.in.([]any)
	if i, err := index(p.key, len(list)); err == nil {
		list[i] = value
	}
}

// index returns the position that a key means in a list of n elements. Like the library, it counts negative ones from
// the end.
func index(key string, n int) (int, error) {
	i, err := strconv.Atoi(key)
	if err != nil {
		return 0, err
	}
	if i < -n || i >= n {
		//lint:ignore ST1005 The library's words.
		return 0, fmt.Errorf("Unable to access invalid index: %d: invalid index referenced", i)
	}
	if i < 0 {
		i += n
	}
	return i, nil
}

func (d *document) add(at place, value any) error {
	if fields, ok := at.in.(map[string]any); ok {
		fields[at.key] = value
		return nil
	}
	list := at.in.([]any)
	if at.key == "-" {
		at.store(append(list, value))
		return nil
	}
	if _, err := strconv.Atoi(at.key); err != nil {
		return fmt.Errorf("value was not a proper array index: '%s': %w", at.key, err)
	}
	i, err := index(at.key, len(list)+1)
	if err != nil {
		return err
	}
	if err := d.shift(len(list) - i); err != nil {
		return err
	}
	at.store(slices.Insert(list, i, value))
	return nil
}

func (d *document) remove(at place) error {
	if fields, ok := at.in.(map[string]any); ok {
		if _, ok := fields[at.key]; !ok {
			//lint:ignore ST1005 The library's words.
			return fmt.Errorf("Unable to remove nonexistent key: %s: %w", at.key, errMissing)
		}
		delete(fields, at.key)
		return nil
	}
	list := at.in.([]any)
	i, err := index(at.key, len(list))
	if err != nil {
		return err
	}
	if err := d.shift(len(list) - i); err != nil {
		return err
	}
	at.store(slices.Delete(list, i, i+1))
	return nil
}

// shift counts elements of a list that are about to be moved.
func (d *document) shift(n int) error {
	if d.shifted += n; d.shifted > maxShifts {
		return fmt.Errorf("the patch moves more than %d elements of lists: insert and remove from the end", maxShifts)
	}
	return nil
}
