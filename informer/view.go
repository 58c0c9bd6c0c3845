package informer

import (
	"context"
	"fmt"
	"iter"

	"k8s.io/apimachinery/pkg/labels"
)

// view is an informer of T over one of Object: the factory runs one engine for all types, so that who asks by Go type and who
// asks by an object at run time share one cache. It asserts the type of each element, which the factory has made sure of.
type view[T Object] struct {
	shared Informer[Object]
}

// typed makes views of an engine.
func typed[T Object](shared Informer[Object]) Informer[T] {
	if same, ok := shared.(Informer[T]); ok {
		return same // T is Object.
	}
	return view[T]{shared}
}

func (v view[T]) AddHandler(h Handler[T], o HandlerOptions) (*Registration, error) {
	var w Handler[Object]
	if h.OnAdd != nil {
		w.OnAdd = func(obj Object, initial bool) { h.OnAdd(obj.(T), initial) }
	}
	if h.OnUpdate != nil {
		w.OnUpdate = func(old, obj Object) { h.OnUpdate(old.(T), obj.(T)) }
	}
	if h.OnDelete != nil {
		w.OnDelete = func(d Deleted[Object]) {
			h.OnDelete(Deleted[T]{Key: d.Key, Object: d.Object.(T), Stale: d.Stale})
		}
	}
	return v.shared.AddHandler(w, o)
}

func (v view[T]) RemoveHandler(ctx context.Context, r *Registration) error {
	return v.shared.RemoveHandler(ctx, r)
}

func (v view[T]) AddIndex(name string, f IndexFunc[T]) error {
	return v.shared.AddIndex(name, func(obj Object) ([]string, error) {
		t, ok := obj.(T)
		if !ok {
			return nil, fmt.Errorf("object is a %T", obj)
		}
		return f(t)
	})
}

func (v view[T]) Get(namespace, name string) (T, bool) {
	obj, found := v.shared.Get(namespace, name)
	if !found {
		var none T
		return none, false
	}
	return obj.(T), true
}

func (v view[T]) List(namespace string, sel labels.Selector) []T {
	return assertAll[T](v.shared.List(namespace, sel))
}

func (v view[T]) ByIndex(name, value string) ([]T, error) {
	objs, err := v.shared.ByIndex(name, value)
	return assertAll[T](objs), err
}

func (v view[T]) All() iter.Seq[T] {
	return func(yield func(T) bool) {
		for obj := range v.shared.All() {
			if !yield(obj.(T)) {
				return
			}
		}
	}
}

func (v view[T]) WaitForResourceVersion(ctx context.Context, namespace, rv string) error {
	return v.shared.WaitForResourceVersion(ctx, namespace, rv)
}

func (v view[T]) ResourceVersion() string               { return v.shared.ResourceVersion() }
func (v view[T]) HasSynced() bool                       { return v.shared.HasSynced() }
func (v view[T]) WaitForSync(ctx context.Context) error { return v.shared.WaitForSync(ctx) }
func (v view[T]) Health() Health                        { return v.shared.Health() }
func (v view[T]) Stats() Stats                          { return v.shared.Stats() }

func assertAll[T Object](objs []Object) []T {
	if objs == nil {
		return nil
	}
	all := make([]T, len(objs))
	for i, obj := range objs {
		all[i] = obj.(T)
	}
	return all
}
