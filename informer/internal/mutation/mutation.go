// Package mutation finds out who changes an object of a cache. Cached objects are shared and read-only; a change shows
// in every reader, and with shared sub-objects even in other objects.
//
// It is for tests: it keeps a copy of every state for ever, and compares after every call of a handler.
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

// Mutation says that somebody changed an object of the cache, which is read-only.
type Mutation struct {
	// Object is the object's key, Field the first field that is not what it was, with its values.
	Object, Field string
	// Handler is the handler after whose call it was found; "" when it may have been anyone who reads the cache.
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
	// pristine has a copy of each object that was ever in the cache, by its address: handlers may hold it for long.
	pristine map[any]any
}

// New returns a detector that calls report for each mutation it finds.
func New[T objects.Object](report func(Mutation)) *Detector[T] {
	return &Detector[T]{report: report, pristine: map[any]any{}}
}

// FromEnv returns a detector that logs errors if the environment variable KUBE_CACHE_MUTATION_DETECTOR is true, else
// nil.
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

// Keep copies the objects that come with changes, and looks a last time at those that go.
func (w *Detector[T]) Keep(changes []indexer.Change[T]) {
	if w == nil {
		return
	}
	for i := range changes {
		c := &changes[i]
		if c.Type == indexer.ChangeUpdate || c.Type == indexer.ChangeDelete {
			w.check(c.Old, "")
		}
		w.mu.Lock()
		if _, known := w.pristine[any(c.New)]; !known {
			w.pristine[any(c.New)] = c.New.DeepCopyObject()
		}
		w.mu.Unlock()
	}
}

// check compares obj with its copy and reports once what differs.
func (w *Detector[T]) check(obj T, handler string) {
	if w == nil {
		return
	}
	w.mu.Lock()
	copied, known := w.pristine[any(obj)]
	var field string
	if known {
		if field = difference(reflect.ValueOf(copied), reflect.ValueOf(obj)); field != "" {
			w.pristine[any(obj)] = obj.DeepCopyObject()
		}
	}
	w.mu.Unlock()
	if field != "" {
		w.report(Mutation{Object: objects.Key(obj), Field: field, Handler: handler})
	}
}

// Guard checks after each call of h what the call was given, and before it, so that h is not blamed for what others
// did.
func (w *Detector[T]) Guard(h handler.Handler[T], name string) handler.Handler[T] {
	if w == nil {
		return h
	}
	g := handler.Handler[T]{}
	if h.OnAdd != nil {
		g.OnAdd = func(obj T, initial bool) {
			w.check(obj, "")
			h.OnAdd(obj, initial)
			w.check(obj, name)
		}
	}
	if h.OnUpdate != nil {
		g.OnUpdate = func(old, obj T) {
			w.check(old, "")
			w.check(obj, "")
			h.OnUpdate(old, obj)
			w.check(old, name)
			w.check(obj, name)
		}
	}
	if h.OnDelete != nil {
		g.OnDelete = func(d handler.Deleted[T]) {
			w.check(d.Object, "")
			h.OnDelete(d)
			w.check(d.Object, name)
		}
	}
	return g
}

// difference finds the first field in which two values differ: "Labels[app]: web -> db". "" when they do not.
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

// opaque compares structs whose fields nobody can look at, such as a time or a quantity.
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

// join puts a name before a path.
func join(name, path string) string {
	if path[0] == ':' || path[0] == '[' {
		return name + path
	}
	return name + "." + path
}
