package shard

import (
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/flyball-dev/flyball/informer"
)

// view shows the objects of one part among those of an informer. An object never changes its part: if its UID or
// namespace differs it is another object, and informers report a deletion and an addition.
type view[T informer.Object] struct {
	informer.Informer[T]
	part *Part
}

func (v *view[T]) excludes(obj T) bool { return !v.part.Matches(obj) }

// AddHandler implements [informer.Informer].
func (v *view[T]) AddHandler(h informer.Handler[T], o informer.HandlerOptions) (*informer.Registration, error) {
	filtered := informer.Handler[T]{}
	if h.OnAdd != nil {
		filtered.OnAdd = func(obj T, initial bool) {
			if v.part.Matches(obj) {
				h.OnAdd(obj, initial)
			}
		}
	}
	if h.OnUpdate != nil {
		filtered.OnUpdate = func(old, obj T) {
			if v.part.Matches(obj) {
				h.OnUpdate(old, obj)
			}
		}
	}
	if h.OnDelete != nil {
		filtered.OnDelete = func(d informer.Deleted[T]) {
			if v.part.Matches(d.Object) {
				h.OnDelete(d)
			}
		}
	}
	return v.Informer.AddHandler(filtered, o)
}

// Get implements [informer.Informer].
func (v *view[T]) Get(namespace, name string) (obj T, found bool) {
	all, found := v.Informer.Get(namespace, name)
	if !found || v.excludes(all) {
		return obj, false
	}
	return all, true
}

// List implements [informer.Informer].
func (v *view[T]) List(namespace string, sel labels.Selector) []T {
	return slices.DeleteFunc(v.Informer.List(namespace, sel), v.excludes)
}

// ByIndex implements [informer.Informer].
func (v *view[T]) ByIndex(name, value string) ([]T, error) {
	all, err := v.Informer.ByIndex(name, value)
	return slices.DeleteFunc(all, v.excludes), err
}

// All implements [informer.Informer].
func (v *view[T]) All() iter.Seq[T] { return v.only(v.Informer.All()) }

// AllByIndex implements [informer.Informer].
func (v *view[T]) AllByIndex(name, value string) (iter.Seq[T], error) {
	all, err := v.Informer.AllByIndex(name, value)
	return v.only(all), err
}

// only returns those of the objects that are of the part.
func (v *view[T]) only(all iter.Seq[T]) iter.Seq[T] {
	return func(yield func(T) bool) {
		all(func(obj T) bool { return !v.part.Matches(obj) || yield(obj) })
	}
}

// Snapshot implements [informer.Informer].
func (v *view[T]) Snapshot() informer.Snapshot[T] { return &snapshot[T]{v.Informer.Snapshot(), v} }

// snapshot shows the objects of one part among those of a snapshot.
type snapshot[T informer.Object] struct {
	informer.Snapshot[T]
	view *view[T]
}

// Get implements [informer.Snapshot].
func (s *snapshot[T]) Get(namespace, name string) (obj T, found bool) {
	all, found := s.Snapshot.Get(namespace, name)
	if !found || s.view.excludes(all) {
		return obj, false
	}
	return all, true
}

// List implements [informer.Snapshot].
func (s *snapshot[T]) List(namespace string, sel labels.Selector) []T {
	return slices.DeleteFunc(s.Snapshot.List(namespace, sel), s.view.excludes)
}

// ByIndex implements [informer.Snapshot].
func (s *snapshot[T]) ByIndex(name, value string) ([]T, error) {
	all, err := s.Snapshot.ByIndex(name, value)
	return slices.DeleteFunc(all, s.view.excludes), err
}
