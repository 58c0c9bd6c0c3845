// Package event has the events of objects as four types, one for each kind of event, and the two interfaces whose
// methods take one of them each. They are the types of controller-runtime. The framework itself needs none of them:
// handler.EventHandler and predicate.Predicate implement the interfaces, and the builder accepts either form.
//
// Source: controller-runtime v0.25.2 pkg/event, pkg/handler and pkg/predicate.
package event

import (
	"context"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
)

// The events of objects of any type.
type (
	CreateEvent  = TypedCreateEvent[informer.Object]
	UpdateEvent  = TypedUpdateEvent[informer.Object]
	DeleteEvent  = TypedDeleteEvent[informer.Object]
	GenericEvent = TypedGenericEvent[informer.Object]
)

// TypedCreateEvent is an object that is new in the cache.
type TypedCreateEvent[T any] struct {
	Object T
	// IsInInitialList reports whether the object was there at the start.
	IsInInitialList bool
}

// TypedUpdateEvent is a change of an object, or a resync, which has the same state twice.
type TypedUpdateEvent[T any] struct {
	// ObjectOld is the state that the cache had before.
	ObjectOld T
	ObjectNew T
}

// TypedDeleteEvent is the deletion of an object.
type TypedDeleteEvent[T any] struct {
	// Object is the last known state.
	Object T
	// DeleteStateUnknown reports whether the deletion itself was missed, so Object may be older than the last state.
	DeleteStateUnknown bool
}

// TypedGenericEvent is an event that does not come from the cache.
type TypedGenericEvent[T any] struct {
	Object T
}

// Handler turns events into keys. See handler.EventHandler for how its methods are called.
type Handler[T any, K comparable] interface {
	Create(ctx context.Context, e TypedCreateEvent[T], q reconcile.Enqueuer[K])
	Update(ctx context.Context, e TypedUpdateEvent[T], q reconcile.Enqueuer[K])
	Delete(ctx context.Context, e TypedDeleteEvent[T], q reconcile.Enqueuer[K])
	Generic(ctx context.Context, e TypedGenericEvent[T], q reconcile.Enqueuer[K])
}

// Predicate reports whether an event passes.
type Predicate[T any] interface {
	Create(e TypedCreateEvent[T]) bool
	Update(e TypedUpdateEvent[T]) bool
	Delete(e TypedDeleteEvent[T]) bool
	Generic(e TypedGenericEvent[T]) bool
}
