package predicate

import (
	"fmt"
	"maps"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/misuse"
	"github.com/flyball-dev/flyball/reconcile/event"
)

// EventType is the kind of an event.
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
	// Initial reports whether this is an Add of an object that was there at the start.
	Initial bool
	// Old is the state before an Update; not set for other events.
	Old T
	// Object is the current state; for a Delete the last known one.
	Object T
	// Stale reports whether the Object of a Delete may be older than the last state, because the deletion was missed.
	Stale bool
}

// Predicate reports whether an event passes. It must not change the objects. It should be cheap, because it is called
// for every event.
type Predicate[T informer.Object] func(Event[T]) bool

// Create implements [event.Predicate].
func (p Predicate[T]) Create(e event.TypedCreateEvent[T]) bool {
	return p(Event[T]{Type: Add, Initial: e.IsInInitialList, Object: e.Object})
}

// Update implements [event.Predicate].
func (p Predicate[T]) Update(e event.TypedUpdateEvent[T]) bool {
	return p(Event[T]{Type: Update, Old: e.ObjectOld, Object: e.ObjectNew})
}

// Delete implements [event.Predicate].
func (p Predicate[T]) Delete(e event.TypedDeleteEvent[T]) bool {
	return p(Event[T]{Type: Delete, Object: e.Object, Stale: e.DeleteStateUnknown})
}

// Generic implements [event.Predicate]. An event that does not come from the cache counts as an Add.
func (p Predicate[T]) Generic(e event.TypedGenericEvent[T]) bool {
	return p(Event[T]{Type: Add, Object: e.Object})
}

// Of returns p as a function; nil if p is nil.
func Of[T informer.Object](p event.Predicate[T]) Predicate[T] {
	if own, ok := p.(Predicate[T]); ok || misuse.IsNil(p) {
		return own
	}
	return func(e Event[T]) bool {
		switch e.Type {
		case Add:
			return p.Create(event.TypedCreateEvent[T]{Object: e.Object, IsInInitialList: e.Initial})
		case Update:
			return p.Update(event.TypedUpdateEvent[T]{ObjectOld: e.Old, ObjectNew: e.Object})
		}
		return p.Delete(event.TypedDeleteEvent[T]{Object: e.Object, DeleteStateUnknown: e.Stale})
	}
}

// Matching passes events whose object matches. An update passes if the old or the new state matches, because a
// controller also has to notice that an object no longer matches.
//
// Source: NewPredicateFuncs of controller-runtime v0.25.2 looks at the new state only.
func Matching[T informer.Object](matches func(obj T) bool) Predicate[T] {
	if matches == nil {
		panic("predicate: Matching: the function is nil")
	}
	return func(e Event[T]) bool { return matches(e.Object) || (e.Type == Update && matches(e.Old)) }
}

// GenerationChanged drops updates that do not change metadata.generation: updates of status, labels and annotations.
// Objects without a generation (ConfigMaps, Secrets, …) pass.
func GenerationChanged[T informer.Object]() Predicate[T] {
	return onUpdate(func(old, obj T) bool {
		return obj.GetGeneration() == 0 || obj.GetGeneration() != old.GetGeneration()
	})
}

// LabelsChanged drops updates that do not change the labels.
func LabelsChanged[T informer.Object]() Predicate[T] {
	return onUpdate(func(old, obj T) bool { return !maps.Equal(old.GetLabels(), obj.GetLabels()) })
}

// AnnotationsChanged drops updates that do not change the annotations.
func AnnotationsChanged[T informer.Object]() Predicate[T] {
	return onUpdate(func(old, obj T) bool { return !maps.Equal(old.GetAnnotations(), obj.GetAnnotations()) })
}

// ResourceVersionChanged drops updates that change nothing, which are resyncs.
func ResourceVersionChanged[T informer.Object]() Predicate[T] {
	return onUpdate(func(old, obj T) bool { return old.GetResourceVersion() != obj.GetResourceVersion() })
}

// DeletionStarted passes only the update that sets the deletion timestamp.
func DeletionStarted[T informer.Object]() Predicate[T] {
	return func(e Event[T]) bool {
		return e.Type == Update && e.Old.GetDeletionTimestamp() == nil && e.Object.GetDeletionTimestamp() != nil
	}
}

// onUpdate applies changed to updates. Adds and deletes pass.
func onUpdate[T informer.Object](changed func(old, obj T) bool) Predicate[T] {
	return func(e Event[T]) bool { return e.Type != Update || changed(e.Old, e.Object) }
}

// And passes events that pass all of ps. It calls them in order and stops at the first that drops the event.
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

// Or passes events that pass at least one of ps.
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

// Not passes events that p drops. It inverts every result: Not of [GenerationChanged] drops all adds and deletes.
func Not[T informer.Object](p Predicate[T]) Predicate[T] {
	mustHave("Not", []Predicate[T]{p})
	return func(e Event[T]) bool { return !p(e) }
}

// mustHave panics if one of ps is nil, so that the mistake shows when the predicate is made and not in an event
// handler.
func mustHave[T informer.Object](of string, ps []Predicate[T]) {
	for i, p := range ps {
		if p == nil {
			panic(fmt.Sprintf("predicate: %s: predicate %d is nil", of, i+1))
		}
	}
}
