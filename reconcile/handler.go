package reconcile

import (
	"context"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer"
)

// Enqueuer puts keys into a controller's queue, each with the cause of the event being handled.
// It is valid for the time of the call it was given to.
type Enqueuer[K comparable] interface {
	// Add queues key at once.
	Add(key K)
	// AddAfter queues key after d. The delay survives an Add of the same key in the meantime.
	AddAfter(key K, d time.Duration)
	// AddRateLimited queues key after the backoff of its failures.
	AddRateLimited(key K)
}

// EventHandler turns the changes of objects into keys. A nil function ignores that kind of change.
//
// Concurrency: called by one goroutine, in the order of the events of each object, after the cache holds
// the change. It should only compute keys; what takes long belongs into the reconciler.
type EventHandler[T any, K comparable] struct {
	// OnAdd hears of an object that is new to the cache; initial tells that it was there at the start.
	OnAdd func(ctx context.Context, obj T, initial bool, q Enqueuer[K])
	// OnUpdate hears of a changed object, with the state that was in the cache before.
	OnUpdate func(ctx context.Context, old, obj T, q Enqueuer[K])
	// OnDelete hears of an object that is gone, with its last known state.
	OnDelete func(ctx context.Context, gone informer.Deleted[T], q Enqueuer[K])
}

// RequestFor is the [Request] that names obj.
func RequestFor(obj metav1.Object) Request {
	return Request{types.NamespacedName{Namespace: obj.GetNamespace(), Name: obj.GetName()}}
}

// EnqueueObject is the handler that queues the object itself. It expands to [EnqueueMapped] with
// [RequestFor].
func EnqueueObject[T informer.Object]() EventHandler[T, Request] {
	return EnqueueMapped(func(_ context.Context, obj T) []Request { return []Request{RequestFor(obj)} })
}

// EnqueueMapped is the handler that queues what keys returns for the object. On an update it is asked for
// the old and for the new object, so that a key which lost the object is queued too. Of a nil function there is no handler, which
// those that take handlers refuse.
func EnqueueMapped[T informer.Object, K comparable](keys func(ctx context.Context, obj T) []K) EventHandler[T, K] {
	if keys == nil {
		return EventHandler[T, K]{}
	}
	add := func(q Enqueuer[K], found []K) {
		for _, key := range found {
			q.Add(key)
		}
	}
	return EventHandler[T, K]{
		OnAdd: func(ctx context.Context, obj T, _ bool, q Enqueuer[K]) { add(q, keys(ctx, obj)) },
		OnUpdate: func(ctx context.Context, old, obj T, q Enqueuer[K]) {
			now := keys(ctx, obj)
			add(q, now)
			add(q, slices.DeleteFunc(slices.Clone(keys(ctx, old)), func(key K) bool { return slices.Contains(now, key) }))
		},
		OnDelete: func(ctx context.Context, gone informer.Deleted[T], q Enqueuer[K]) { add(q, keys(ctx, gone.Object)) },
	}
}
