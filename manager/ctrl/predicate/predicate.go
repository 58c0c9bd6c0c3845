// Package predicate has the predicates of controller-runtime. The builder accepts them as it does those of
// reconcile/predicate, and the two kinds can be combined by [And], [Or] and [Not].
//
// Source: controller-runtime v0.25.2 pkg/predicate.
package predicate

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/internal/misuse"
	"github.com/flyball-dev/flyball/reconcile/event"
)

// The interface of predicates, and a predicate made of functions.
type (
	Predicate             = TypedPredicate[client.Object]
	TypedPredicate[T any] = event.Predicate[T]
	Funcs                 = TypedFuncs[client.Object]
)

// TypedFuncs calls one function for each type of event. Events whose function is nil pass.
type TypedFuncs[T any] struct {
	CreateFunc  func(event.TypedCreateEvent[T]) bool
	DeleteFunc  func(event.TypedDeleteEvent[T]) bool
	UpdateFunc  func(event.TypedUpdateEvent[T]) bool
	GenericFunc func(event.TypedGenericEvent[T]) bool
}

// Create implements [event.Predicate].
func (f TypedFuncs[T]) Create(e event.TypedCreateEvent[T]) bool {
	return f.CreateFunc == nil || f.CreateFunc(e)
}

// Delete implements [event.Predicate].
func (f TypedFuncs[T]) Delete(e event.TypedDeleteEvent[T]) bool {
	return f.DeleteFunc == nil || f.DeleteFunc(e)
}

// Update implements [event.Predicate].
func (f TypedFuncs[T]) Update(e event.TypedUpdateEvent[T]) bool {
	return f.UpdateFunc == nil || f.UpdateFunc(e)
}

// Generic implements [event.Predicate].
func (f TypedFuncs[T]) Generic(e event.TypedGenericEvent[T]) bool {
	return f.GenericFunc == nil || f.GenericFunc(e)
}

// NewPredicateFuncs passes the events whose object filter accepts; for an update that is the new state alone.
func NewPredicateFuncs(filter func(obj client.Object) bool) Funcs {
	return Funcs{
		CreateFunc:  func(e event.CreateEvent) bool { return filter(e.Object) },
		UpdateFunc:  func(e event.UpdateEvent) bool { return filter(e.ObjectNew) },
		DeleteFunc:  func(e event.DeleteEvent) bool { return filter(e.Object) },
		GenericFunc: func(e event.GenericEvent) bool { return filter(e.Object) },
	}
}

// LabelSelectorPredicate is [NewPredicateFuncs] with a label selector.
func LabelSelectorPredicate(s metav1.LabelSelector) (Predicate, error) {
	selector, err := metav1.LabelSelectorAsSelector(&s)
	if err != nil {
		return Funcs{}, err
	}
	return NewPredicateFuncs(func(obj client.Object) bool { return selector.Matches(labels.Set(obj.GetLabels())) }), nil
}

// Each of these drops the updates that do not change a part of the metadata, and updates without an object. They are
// structs, so that a predicate can embed one and override a method.
type (
	GenerationChangedPredicate      struct{ Funcs }
	ResourceVersionChangedPredicate struct{ Funcs }
	LabelChangedPredicate           struct{ Funcs }
	AnnotationChangedPredicate      struct{ Funcs }
)

// Update reports whether the generation changed. In contrast to GenerationChanged of reconcile/predicate, it drops all
// updates of objects that have no generation, such as ConfigMaps.
func (GenerationChangedPredicate) Update(e event.UpdateEvent) bool {
	return whole(e) && e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration()
}

// Update implements [event.Predicate].
func (ResourceVersionChangedPredicate) Update(e event.UpdateEvent) bool {
	return whole(e) && e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion()
}

// Update implements [event.Predicate].
func (LabelChangedPredicate) Update(e event.UpdateEvent) bool {
	return whole(e) && !maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels())
}

// Update implements [event.Predicate].
func (AnnotationChangedPredicate) Update(e event.UpdateEvent) bool {
	return whole(e) && !maps.Equal(e.ObjectOld.GetAnnotations(), e.ObjectNew.GetAnnotations())
}

func whole(e event.UpdateEvent) bool { return !misuse.IsNil(e.ObjectOld) && !misuse.IsNil(e.ObjectNew) }

// And passes the events that all of ps pass, Or those that at least one passes, and Not those that p drops.
func And[T any](ps ...TypedPredicate[T]) TypedPredicate[T] {
	return of(func(pass func(TypedPredicate[T]) bool) bool {
		return !slices.ContainsFunc(ps, func(p TypedPredicate[T]) bool { return !pass(p) })
	})
}

// Or is described at [And].
func Or[T any](ps ...TypedPredicate[T]) TypedPredicate[T] {
	return of(func(pass func(TypedPredicate[T]) bool) bool { return slices.ContainsFunc(ps, pass) })
}

// Not is described at [And].
func Not[T any](p TypedPredicate[T]) TypedPredicate[T] {
	return of(func(pass func(TypedPredicate[T]) bool) bool { return !pass(p) })
}

// of returns a predicate that judges an event by what some predicates make of it.
func of[T any](judge func(pass func(TypedPredicate[T]) bool) bool) TypedPredicate[T] {
	return TypedFuncs[T]{
		CreateFunc: func(e event.TypedCreateEvent[T]) bool {
			return judge(func(p TypedPredicate[T]) bool { return p.Create(e) })
		},
		UpdateFunc: func(e event.TypedUpdateEvent[T]) bool {
			return judge(func(p TypedPredicate[T]) bool { return p.Update(e) })
		},
		DeleteFunc: func(e event.TypedDeleteEvent[T]) bool {
			return judge(func(p TypedPredicate[T]) bool { return p.Delete(e) })
		},
		GenericFunc: func(e event.TypedGenericEvent[T]) bool {
			return judge(func(p TypedPredicate[T]) bool { return p.Generic(e) })
		},
	}
}
