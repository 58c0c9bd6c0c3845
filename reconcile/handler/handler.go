package handler

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/internal/misuse"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/event"
	"github.com/flyball-dev/flyball/reconcile/predicate"
)

// EventHandler turns the events of objects into keys. A nil function ignores events of its kind.
//
// Concurrency: the functions are called on one goroutine, in the order of the events of each object, and after the
// cache has the change. They should only compute keys. Work that takes long belongs in the reconciler.
type EventHandler[T any, K comparable] struct {
	// OnAdd is called for an object that is new in the cache. initial reports whether it was there at the start.
	OnAdd func(ctx context.Context, obj T, initial bool, q reconcile.Enqueuer[K])
	// OnUpdate is called for a changed object. old is the state that the cache had before.
	OnUpdate func(ctx context.Context, old, obj T, q reconcile.Enqueuer[K])
	// OnDelete is called for a deleted object, with its last known state.
	OnDelete func(ctx context.Context, gone informer.Deleted[T], q reconcile.Enqueuer[K])
}

// Create implements [event.Handler].
func (h EventHandler[T, K]) Create(ctx context.Context, e event.TypedCreateEvent[T], q reconcile.Enqueuer[K]) {
	if h.OnAdd != nil {
		h.OnAdd(ctx, e.Object, e.IsInInitialList, q)
	}
}

// Update implements [event.Handler].
func (h EventHandler[T, K]) Update(ctx context.Context, e event.TypedUpdateEvent[T], q reconcile.Enqueuer[K]) {
	if h.OnUpdate != nil {
		h.OnUpdate(ctx, e.ObjectOld, e.ObjectNew, q)
	}
}

// Delete implements [event.Handler].
func (h EventHandler[T, K]) Delete(ctx context.Context, e event.TypedDeleteEvent[T], q reconcile.Enqueuer[K]) {
	if h.OnDelete == nil {
		return
	}
	gone := informer.Deleted[T]{Object: e.Object, Stale: e.DeleteStateUnknown}
	if obj, ok := any(e.Object).(metav1.Object); ok {
		gone.Key = informer.Key(obj)
	}
	h.OnDelete(ctx, gone, q)
}

// Generic implements [event.Handler]. An event that does not come from the cache counts as an Add.
func (h EventHandler[T, K]) Generic(ctx context.Context, e event.TypedGenericEvent[T], q reconcile.Enqueuer[K]) {
	h.Create(ctx, event.TypedCreateEvent[T]{Object: e.Object}, q)
}

// Of returns h as functions; none if h is nil.
func Of[T any, K comparable](h event.Handler[T, K]) EventHandler[T, K] {
	if own, ok := h.(EventHandler[T, K]); ok || misuse.IsNil(h) {
		return own
	}
	return EventHandler[T, K]{
		OnAdd: func(ctx context.Context, obj T, initial bool, q reconcile.Enqueuer[K]) {
			h.Create(ctx, event.TypedCreateEvent[T]{Object: obj, IsInInitialList: initial}, q)
		},
		OnUpdate: func(ctx context.Context, old, obj T, q reconcile.Enqueuer[K]) {
			h.Update(ctx, event.TypedUpdateEvent[T]{ObjectOld: old, ObjectNew: obj}, q)
		},
		OnDelete: func(ctx context.Context, gone informer.Deleted[T], q reconcile.Enqueuer[K]) {
			h.Delete(ctx, event.TypedDeleteEvent[T]{Object: gone.Object, DeleteStateUnknown: gone.Stale}, q)
		},
	}
}

// EnqueueObject returns a handler that queues the object itself. It expands to [EnqueueMapped] with
// reconcile.RequestFor.
func EnqueueObject[T informer.Object]() EventHandler[T, reconcile.Request] {
	return EnqueueMapped(func(_ context.Context, obj T) []reconcile.Request {
		return []reconcile.Request{reconcile.RequestFor(obj)}
	})
}

// EnqueueMapped returns a handler that queues the keys that a function returns for the object. On an update it calls
// the function for the new and for the old state, so a key that only the old state led to is queued too. If the
// function is nil, the handler is empty, and source.Kind reports an error.
func EnqueueMapped[T informer.Object, K comparable](keys func(ctx context.Context, obj T) []K) EventHandler[T, K] {
	if keys == nil {
		return EventHandler[T, K]{}
	}
	add := func(q reconcile.Enqueuer[K], found []K) {
		for _, key := range found {
			q.Add(key)
		}
	}
	return EventHandler[T, K]{
		OnAdd: func(ctx context.Context, obj T, _ bool, q reconcile.Enqueuer[K]) { add(q, keys(ctx, obj)) },
		OnUpdate: func(ctx context.Context, old, obj T, q reconcile.Enqueuer[K]) {
			now := keys(ctx, obj)
			add(q, now)
			add(
				q, slices.DeleteFunc(slices.Clone(keys(ctx, old)),
					func(key K) bool { return slices.Contains(now, key) }),
			)
		},
		OnDelete: func(ctx context.Context, gone informer.Deleted[T], q reconcile.Enqueuer[K]) {
			add(q, keys(ctx, gone.Object))
		},
	}
}

// OwnerOptions select owners. The zero value selects the controller of an object, in the namespace of the object.
type OwnerOptions struct {
	// ClusterScoped reports whether the owners have no namespace, like Nodes. An owner reference does not show whether
	// the owner has a namespace; client.Cluster.IsObjectNamespaced reports it.
	ClusterScoped bool
	// EveryOwner selects all owners of the kind, not only the one whose reference has controller=true.
	EveryOwner bool
}

// EnqueueOwner returns a handler that queues the owner of an object if it is of the given kind. The API group and the
// kind of the owner reference have to match, the version does not. When the reference changes, the old and the new
// owner are queued. EnqueueOwner expands to [EnqueueMapped] with [OwnersOf].
//
// Builder.Owns of manager/builder sets ClusterScoped by itself.
func EnqueueOwner[T informer.Object](kind schema.GroupKind, o OwnerOptions) EventHandler[T, reconcile.Request] {
	if kind.Kind == "" {
		panic(
			"handler: EnqueueOwner: the kind is empty; give one like " +
				`schema.GroupKind{Group: "apps", Kind: "Deployment"}`,
		)
	}
	return EnqueueMapped(func(_ context.Context, obj T) []reconcile.Request { return OwnersOf(obj, kind, o) })
}

// OwnersOf returns the requests for the owners of obj that are of the given kind.
func OwnersOf(obj metav1.Object, kind schema.GroupKind, o OwnerOptions) (owners []reconcile.Request) {
	for _, ref := range obj.GetOwnerReferences() {
		if ref.Kind != kind.Kind || !o.EveryOwner && (ref.Controller == nil || !*ref.Controller) {
			continue
		}
		group, err := schema.ParseGroupVersion(ref.APIVersion)
		if err != nil || group.Group != kind.Group {
			continue
		}
		owner := reconcile.Request{NamespacedName: types.NamespacedName{Name: ref.Name}}
		if !o.ClusterScoped {
			owner.Namespace = obj.GetNamespace()
		}
		owners = append(owners, owner)
	}
	return owners
}

// Filter returns a handler that calls h only for events that pass all predicates.
func Filter[T informer.Object, K comparable](h EventHandler[T, K], ps ...predicate.Predicate[T]) EventHandler[T, K] {
	pass := predicate.And(ps...)
	filtered := EventHandler[T, K]{}
	if h.OnAdd != nil {
		filtered.OnAdd = func(ctx context.Context, obj T, initial bool, q reconcile.Enqueuer[K]) {
			if pass(predicate.Event[T]{Type: predicate.Add, Initial: initial, Object: obj}) {
				h.OnAdd(ctx, obj, initial, q)
			}
		}
	}
	if h.OnUpdate != nil {
		filtered.OnUpdate = func(ctx context.Context, old, obj T, q reconcile.Enqueuer[K]) {
			if pass(predicate.Event[T]{Type: predicate.Update, Old: old, Object: obj}) {
				h.OnUpdate(ctx, old, obj, q)
			}
		}
	}
	if h.OnDelete != nil {
		filtered.OnDelete = func(ctx context.Context, gone informer.Deleted[T], q reconcile.Enqueuer[K]) {
			if pass(predicate.Event[T]{Type: predicate.Delete, Object: gone.Object, Stale: gone.Stale}) {
				h.OnDelete(ctx, gone, q)
			}
		}
	}
	return filtered
}
