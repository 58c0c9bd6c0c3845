// Package mutation finds handlers that modify objects of a cache. Cached objects are shared and read-only: every reader
// sees a modification and, because objects share parts, other objects may change with it.
//
// It is for tests: it keeps a copy of every state for ever, and compares the objects with their copies around every
// call of a handler.
package mutation

import (
	"fmt"
	"os"
	"reflect"
	"strconv"
	"sync"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/informer/handler"
	"github.com/flyball-dev/flyball/informer/indexer"
	"github.com/flyball-dev/flyball/informer/objects"
)

// Mutation is a modification of an object in the cache.
type Mutation struct {
	// Object is the object's key. Field is the first field that differs, with its old and new value.
	Object, Field string
	// Handler is the name of the handler during whose call the object changed. It is "" if any reader of the cache may
	// have changed the object.
	Handler string
}

func (m Mutation) String() string {
	who := "a reader of the cache"
	if m.Handler != "" {
		who = "handler " + m.Handler
	}
	return fmt.Sprintf("%s changed %s of %s, which is shared: copy it first", who, m.Field, m.Object)
}

// Detector finds mutations. A nil Detector does nothing.
type Detector[T objects.Object] struct {
	report func(Mutation)

	mu sync.Mutex
	// pristine has a copy of each object that was ever in the cache, by address. It never shrinks, because a handler
	// may hold an object for a long time.
	pristine map[any]any
}

// New returns a detector that calls report for each mutation it finds.
func New[T objects.Object](report func(Mutation)) *Detector[T] {
	return &Detector[T]{report: report, pristine: map[any]any{}}
}

// FromEnv returns a detector that logs errors if the environment variable KUBE_CACHE_MUTATION_DETECTOR is true, and nil
// otherwise.
//
// Source: k8s.io/client-go/tools/cache v0.37.2 mutation_detector.go, which panics instead.
func FromEnv[T objects.Object](resource string) *Detector[T] {
	if on, _ := strconv.ParseBool(os.Getenv("KUBE_CACHE_MUTATION_DETECTOR")); !on {
		return nil
	}
	return New[T](func(m Mutation) {
		klog.Background().Error(nil, "Cached object was modified", "resource", resource, "object", m.Object,
			"reason", m.String())
	})
}

// Keep copies the objects that enter the cache. It checks those that leave the cache one last time.
func (d *Detector[T]) Keep(changes []indexer.Change[T]) {
	if d == nil {
		return
	}
	for i := range changes {
		c := &changes[i]
		if c.Type == indexer.ChangeUpdate || c.Type == indexer.ChangeDelete {
			d.check(c.Old, "")
		}
		d.mu.Lock()
		if _, known := d.pristine[any(c.New)]; !known {
			d.pristine[any(c.New)] = c.New.DeepCopyObject()
		}
		d.mu.Unlock()
	}
}

// check compares obj with its copy. It reports each difference once.
func (d *Detector[T]) check(obj T, handler string) {
	if d == nil {
		return
	}
	d.mu.Lock()
	copied, known := d.pristine[any(obj)]
	var field string
	if known {
		if field = difference(reflect.ValueOf(copied), reflect.ValueOf(obj)); field != "" {
			d.pristine[any(obj)] = obj.DeepCopyObject()
		}
	}
	d.mu.Unlock()
	if field != "" {
		d.report(Mutation{Object: objects.Key(obj), Field: field, Handler: handler})
	}
}

// Guard returns a handler that checks the objects before and after each call of h. The check before the call keeps h
// from being blamed for what others have changed.
func (d *Detector[T]) Guard(h handler.Handler[T], name string) handler.Handler[T] {
	if d == nil {
		return h
	}
	g := handler.Handler[T]{}
	if h.OnAdd != nil {
		g.OnAdd = func(obj T, initial bool) {
			d.check(obj, "")
			h.OnAdd(obj, initial)
			d.check(obj, name)
		}
	}
	if h.OnUpdate != nil {
		g.OnUpdate = func(old, obj T) {
			d.check(old, "")
			d.check(obj, "")
			h.OnUpdate(old, obj)
			d.check(old, name)
			d.check(obj, name)
		}
	}
	if h.OnDelete != nil {
		g.OnDelete = func(gone handler.Deleted[T]) {
			d.check(gone.Object, "")
			h.OnDelete(gone)
			d.check(gone.Object, name)
		}
	}
	return g
}

// difference returns the first field in which two values differ, such as "Labels[app]: web -> db"; "" if there is none.
func difference(a, b reflect.Value) string {
	if a.IsValid() != b.IsValid() || (a.IsValid() && a.Type() != b.Type()) {
		return fmt.Sprintf(": %v -> %v", a, b)
	}
	if !a.IsValid() {
		return ""
	}
	switch a.Kind() {
	case reflect.Pointer, reflect.Interface:
		if a.IsNil() || b.IsNil() {
			return unequal(a, b, a.IsNil() == b.IsNil())
		}
		return difference(a.Elem(), b.Elem())
	case reflect.Struct:
		for i := range a.NumField() {
			if !a.Type().Field(i).IsExported() {
				continue
			}
			if d := difference(a.Field(i), b.Field(i)); d != "" {
				return join(a.Type().Field(i).Name, d)
			}
		}
		return unequal(a, b, opaque(a, b))
	case reflect.Map:
		return differenceOfMaps(a, b)
	case reflect.Slice, reflect.Array:
		for i := range min(a.Len(), b.Len()) {
			if d := difference(a.Index(i), b.Index(i)); d != "" {
				return join(fmt.Sprintf("[%d]", i), d)
			}
		}
		return unequal(a, b, a.Len() == b.Len())
	default:
		return unequal(a, b, a.Equal(b))
	}
}

// opaque reports whether structs without exported fields, such as a time or a quantity, are equal.
func opaque(a, b reflect.Value) bool {
	return !a.CanInterface() || reflect.DeepEqual(a.Interface(), b.Interface())
}

func differenceOfMaps(a, b reflect.Value) string {
	var none reflect.Value
	for _, m := range []reflect.Value{a, b} {
		for _, k := range m.MapKeys() {
			va, vb := a.MapIndex(k), b.MapIndex(k)
			if va == none || vb == none {
				return fmt.Sprintf("[%v]: %v -> %v", k, shown(va), shown(vb))
			}
			if d := difference(va, vb); d != "" {
				return join(fmt.Sprintf("[%v]", k), d)
			}
		}
	}
	return ""
}

func shown(v reflect.Value) any {
	if !v.IsValid() {
		return "(none)"
	}
	return v
}

func unequal(a, b reflect.Value, same bool) string {
	if same {
		return ""
	}
	return fmt.Sprintf(": %v -> %v", a, b)
}

// join prepends a field's name to a path.
func join(name, path string) string {
	if path[0] == ':' || path[0] == '[' {
		return name + path
	}
	return name + "." + path
}
