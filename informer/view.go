package informer

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/flyball-dev/flyball/informer/handler"
	"github.com/flyball-dev/flyball/informer/indexer"
	"github.com/flyball-dev/flyball/informer/objects"
)

// view is an informer of T on top of one of Object. The factory's informers all hold Object, so a caller that names a
// Go type and a caller that has only a kind at run time share one cache. view asserts the type of each element; the
// factory has made sure that it is T.
type view[T objects.Object] struct {
	// Informer is the shared informer. Its methods that do not mention T are promoted.
	Informer[objects.Object]
	// resync applies to handlers that do not set their own.
	resync time.Duration

	mu sync.Mutex
	// handlers were added through this view.
	handlers []handler.Registration
	// giveBack returns the informer to the factory; nil once it was called.
	giveBack func()
}

// viewOf returns the informer of objects like example. A nil example stands for the Go type of o.Kind.
func viewOf[T objects.Object](f *Factory, example any, o InformerOptions) (Informer[T], error) {
	if f == nil {
		return nil, fmt.Errorf(
			"informer of %v: the factory is nil: NewFactory makes one, Informers of a manager is one",
			reflect.TypeFor[T](),
		)
	}
	id, newObject, err := f.identify(example, o)
	if err != nil {
		return nil, err
	}
	c, err := f.shared(id, newObject, o)
	if err != nil {
		return nil, err
	}
	return &view[T]{Informer: c.engine, resync: f.o.Resync, giveBack: func() { f.giveBack(c) }}, nil
}

// release removes the handlers and gives the informer back. Further calls do nothing.
func (v *view[T]) release() {
	v.mu.Lock()
	giveBack, handlers := v.giveBack, v.handlers
	v.giveBack, v.handlers = nil, nil
	v.mu.Unlock()
	if giveBack == nil {
		return
	}
	now, cancel := context.WithCancel(context.Background())
	cancel()
	for _, r := range handlers {
		_ = v.Informer.RemoveHandler(now, r) // The error only counts what is dropped.
	}
	giveBack()
}

func (v *view[T]) AddHandler(h handler.Handler[T], o handler.Options) (handler.Registration, error) {
	o.Resync = cmp.Or(o.Resync, v.resync)
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.giveBack == nil {
		return nil, fmt.Errorf("add handler to an informer that was released: %w", handler.ErrStopped)
	}
	r, err := v.Informer.AddHandler(untyped(h), o)
	if err == nil {
		v.handlers = append(v.handlers, r)
	}
	return r, err
}

// untyped converts a handler of T to one of Object.
func untyped[T objects.Object](h handler.Handler[T]) handler.Handler[objects.Object] {
	var w handler.Handler[objects.Object]
	if h.OnAdd != nil {
		w.OnAdd = func(obj objects.Object, initial bool) { h.OnAdd(obj.(T), initial) }
	}
	if h.OnUpdate != nil {
		w.OnUpdate = func(old, obj objects.Object) { h.OnUpdate(old.(T), obj.(T)) }
	}
	if h.OnDelete != nil {
		w.OnDelete = func(d handler.Deleted[objects.Object]) {
			h.OnDelete(handler.Deleted[T]{Key: d.Key, Object: d.Object.(T), Stale: d.Stale})
		}
	}
	return w
}

func (v *view[T]) RemoveHandler(ctx context.Context, r handler.Registration) error {
	v.mu.Lock()
	v.handlers = slices.DeleteFunc(v.handlers, func(other handler.Registration) bool { return other == r })
	v.mu.Unlock()
	return v.Informer.RemoveHandler(ctx, r)
}

func (v *view[T]) AddIndex(name string, f indexer.IndexFunc[T]) error {
	if f == nil {
		return v.Informer.AddIndex(name, nil) // It returns the error for nil.
	}
	return v.Informer.AddIndex(name, func(obj objects.Object) ([]string, error) {
		if t, ok := obj.(T); ok {
			return f(t)
		}
		return nil, fmt.Errorf("object is a %T", obj)
	})
}

func (v *view[T]) Get(namespace, name string) (T, bool) {
	return assertFound[T](v.Informer.Get(namespace, name))
}

func (v *view[T]) List(namespace string, sel labels.Selector) []T {
	return assertAll[T](v.Informer.List(namespace, sel))
}

func (v *view[T]) ByIndex(name, value string) ([]T, error) {
	objs, err := v.Informer.ByIndex(name, value)
	return assertAll[T](objs), err
}

func (v *view[T]) All() iter.Seq[T] { return assertEach[T](v.Informer.All()) }

func (v *view[T]) AllByIndex(name, value string) (iter.Seq[T], error) {
	objs, err := v.Informer.AllByIndex(name, value)
	return assertEach[T](objs), err
}

func (v *view[T]) Snapshot() indexer.Snapshot[T] { return snapshotView[T]{v.Informer.Snapshot()} }

// snapshotView is the view of a snapshot.
type snapshotView[T objects.Object] struct {
	indexer.Snapshot[objects.Object]
}

func (v snapshotView[T]) Get(namespace, name string) (T, bool) {
	return assertFound[T](v.Snapshot.Get(namespace, name))
}

func (v snapshotView[T]) List(namespace string, sel labels.Selector) []T {
	return assertAll[T](v.Snapshot.List(namespace, sel))
}

func (v snapshotView[T]) ByIndex(name, value string) ([]T, error) {
	objs, err := v.Snapshot.ByIndex(name, value)
	return assertAll[T](objs), err
}

func assertFound[T objects.Object](obj objects.Object, found bool) (typed T, _ bool) {
	if found {
		typed = obj.(T)
	}
	return typed, found
}

// assertAll returns the same slice if T is the interface.
func assertAll[T objects.Object](objs []objects.Object) []T {
	if same, ok := any(objs).([]T); ok {
		return same
	}
	all := make([]T, len(objs))
	for i, obj := range objs {
		all[i] = obj.(T)
	}
	return all
}

func assertEach[T objects.Object](objs iter.Seq[objects.Object]) iter.Seq[T] {
	return func(yield func(T) bool) {
		objs(func(obj objects.Object) bool { return yield(obj.(T)) })
	}
}
