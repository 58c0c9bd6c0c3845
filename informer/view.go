package informer

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/flyball-dev/flyball/informer/indexer"
	"github.com/flyball-dev/flyball/informer/internal/fanout"
	"github.com/flyball-dev/flyball/informer/internal/objects"
)

// view is an informer of T over one of Object: the factory runs one engine for all types, so that who asks by Go type
// and who asks by an object at run time share one cache. It asserts the type of each element, which the factory has
// made sure of.
type view[T objects.Object] struct {
	// Informer is the shared one. It answers what does not depend on T.
	Informer[objects.Object]
	// resync is that of handlers that do not say.
	resync time.Duration

	mu sync.Mutex
	// handlers are those added through this view.
	handlers []*fanout.Registration
	// giveBack tells the factory that this user has gone; nil when it was told.
	giveBack func()
}

// release gives the informer back, once, and takes the handlers along.
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
		_ = v.Informer.RemoveHandler(now, r) // The error counts what is dropped, as promised.
	}
	giveBack()
}

func (v *view[T]) AddHandler(h fanout.Handler[T], o fanout.HandlerOptions) (*fanout.Registration, error) {
	if o.Resync == 0 {
		o.Resync = v.resync
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.giveBack == nil {
		return nil, fmt.Errorf("add handler to an informer that was released: %w", fanout.ErrStopped)
	}
	r, err := v.Informer.AddHandler(untyped(h), o)
	if err == nil {
		v.handlers = append(v.handlers, r)
	}
	return r, err
}

// untyped makes of a handler of T one of Object.
func untyped[T objects.Object](h fanout.Handler[T]) fanout.Handler[objects.Object] {
	var w fanout.Handler[objects.Object]
	if h.OnAdd != nil {
		w.OnAdd = func(obj objects.Object, initial bool) { h.OnAdd(obj.(T), initial) }
	}
	if h.OnUpdate != nil {
		w.OnUpdate = func(old, obj objects.Object) { h.OnUpdate(old.(T), obj.(T)) }
	}
	if h.OnDelete != nil {
		w.OnDelete = func(d fanout.Deleted[objects.Object]) {
			h.OnDelete(fanout.Deleted[T]{Key: d.Key, Object: d.Object.(T), Stale: d.Stale})
		}
	}
	return w
}

func (v *view[T]) RemoveHandler(ctx context.Context, r *fanout.Registration) error {
	v.mu.Lock()
	v.handlers = slices.DeleteFunc(v.handlers, func(other *fanout.Registration) bool { return other == r })
	v.mu.Unlock()
	return v.Informer.RemoveHandler(ctx, r)
}

func (v *view[T]) AddIndex(name string, f indexer.IndexFunc[T]) error {
	if f == nil {
		return v.Informer.AddIndex(name, nil) // It says what is wrong.
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

// snapshotView is to a snapshot what view is to an informer.
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

func assertAll[T objects.Object](objs []objects.Object) []T {
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
