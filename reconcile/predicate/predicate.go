package predicate

import (
	"fmt"
	"maps"

	"github.com/flyball-dev/flyball/informer"
)

// EventType is what happened to an object.
type EventType uint8

// The types of events.
const (
	Add EventType = iota
	Update
	Delete
)

// Event is a change of one object.
type Event[T informer.Object] struct {
	Type EventType
	// Initial marks an Add of what was there at the start.
	Initial bool
	// Old is the state before; set for an Update only.
	Old T
	// Object is the state now, for a Delete the last known one.
	Object T
}

// Predicate tells whether an event is worth hearing of. It must not change the objects, and is asked for every event:
// it should be cheap.
type Predicate[T informer.Object] func(Event[T]) bool

// Matching lets events pass whose object matches. An update passes when the old state or the new one does: that an
// object stopped to match is news as well.
//
// Source: NewPredicateFuncs of controller-runtime v0.25.2 looks at the new state only.
func Matching[T informer.Object](matches func(obj T) bool) Predicate[T] {
	if matches == nil {
		panic("predicate: Matching: the function is nil")
	}
	return func(e Event[T]) bool { return matches(e.Object) || (e.Type == Update && matches(e.Old)) }
}

// GenerationChanged drops updates that leave metadata.generation alone: those of status, labels and annotations.
// Objects without generations (ConfigMaps, Secrets, …) pass.
func GenerationChanged[T informer.Object]() Predicate[T] {
	return onUpdate(func(old, obj T) bool {
		return obj.GetGeneration() == 0 || obj.GetGeneration() != old.GetGeneration()
	})
}

// LabelsChanged drops updates that leave the labels alone.
func LabelsChanged[T informer.Object]() Predicate[T] {
	return onUpdate(func(old, obj T) bool { return !maps.Equal(old.GetLabels(), obj.GetLabels()) })
}

// AnnotationsChanged drops updates that leave the annotations alone.
func AnnotationsChanged[T informer.Object]() Predicate[T] {
	return onUpdate(func(old, obj T) bool { return !maps.Equal(old.GetAnnotations(), obj.GetAnnotations()) })
}

// ResourceVersionChanged drops updates that change nothing: resyncs.
func ResourceVersionChanged[T informer.Object]() Predicate[T] {
	return onUpdate(func(old, obj T) bool { return old.GetResourceVersion() != obj.GetResourceVersion() })
}

// DeletionStarted lets pass only the update that sets the deletion timestamp.
func DeletionStarted[T informer.Object]() Predicate[T] {
	return func(e Event[T]) bool {
		return e.Type == Update && e.Old.GetDeletionTimestamp() == nil && e.Object.GetDeletionTimestamp() != nil
	}
}

// onUpdate judges updates; adds and deletes pass.
func onUpdate[T informer.Object](changed func(old, obj T) bool) Predicate[T] {
	return func(e Event[T]) bool { return e.Type != Update || changed(e.Old, e.Object) }
}

// And lets pass what all of ps do. It asks them in order, up to the first that does not.
func And[T informer.Object](ps ...Predicate[T]) Predicate[T] {
	mustHave("And", ps)
	return func(e Event[T]) bool {
		for _, p := range ps {
			if !p(e) {
				return false
			}
		}
		return true
	}
}

// Or lets pass what one of ps does.
func Or[T informer.Object](ps ...Predicate[T]) Predicate[T] {
	mustHave("Or", ps)
	return func(e Event[T]) bool {
		for _, p := range ps {
			if p(e) {
				return true
			}
		}
		return false
	}
}

// Not lets pass what p does not. Mind that it turns every answer: Not of [GenerationChanged] drops all adds and
// deletes.
func Not[T informer.Object](p Predicate[T]) Predicate[T] {
	mustHave("Not", []Predicate[T]{p})
	return func(e Event[T]) bool { return !p(e) }
}

// mustHave panics when one of ps is nil, here and not in an event handler.
func mustHave[T informer.Object](of string, ps []Predicate[T]) {
	for i, p := range ps {
		if p == nil {
			panic(fmt.Sprintf("predicate: %s: predicate %d is nil", of, i+1))
		}
	}
}
