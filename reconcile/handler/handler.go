package handler

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/predicate"
)

// EventHandler turns the changes of objects into keys. A nil function ignores that kind of change.
//
// Concurrency: called by one goroutine, in the order of the events of each object, after the cache holds
// the change. It should only compute keys; what takes long belongs into the reconciler.
type EventHandler[T any, K comparable] struct {
	// OnAdd hears of an object that is new to the cache; initial tells that it was there at the start.
	OnAdd func(ctx context.Context, obj T, initial bool, q reconcile.Enqueuer[K])
	// OnUpdate hears of a changed object, with the state that was in the cache before.
	OnUpdate func(ctx context.Context, old, obj T, q reconcile.Enqueuer[K])
	// OnDelete hears of an object that is gone, with its last known state.
	OnDelete func(ctx context.Context, gone informer.Deleted[T], q reconcile.Enqueuer[K])
}

// EnqueueObject is the handler that queues the object itself. It expands to [EnqueueMapped] with
// reconcile.RequestFor.
func EnqueueObject[T informer.Object]() EventHandler[T, reconcile.Request] {
	return EnqueueMapped(func(_ context.Context, obj T) []reconcile.Request {
		return []reconcile.Request{reconcile.RequestFor(obj)}
	})
}

// EnqueueMapped is the handler that queues what keys returns for the object. On an update it is asked for the old and
// for the new object, so that a key which lost the object is queued too. Of a nil function there is no handler, which
// those that take handlers refuse.
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

// OwnerOptions say which owners of a kind are meant, and where they live. The zero value is the controller, in the
// namespace of what it owns.
type OwnerOptions struct {
	// ClusterScoped says that the owners live in no namespace, as Nodes do; what they own may be in any. An owner
	// reference does not tell: the kind's RESTMapping does, which manager.Manager.IsNamespaced asks for.
	ClusterScoped bool
	// EveryOwner means all owners of the kind, not only the one whose reference says controller=true.
	EveryOwner bool
}

// EnqueueOwner is the handler that queues the owner of an object, if that is of the given kind: the owner reference
// whose API group and kind match, in whatever version. When the reference changes, the old and the new owner are
// queued. It expands to [EnqueueMapped] with [OwnersOf].
//
// Builder.Owns of manager/builder finds out itself whether the owners live in namespaces.
func EnqueueOwner[T informer.Object](kind schema.GroupKind, o OwnerOptions) EventHandler[T, reconcile.Request] {
	if kind.Kind == "" {
		panic(
			`handler: EnqueueOwner: the kind is empty; give one like schema.GroupKind{Group: "apps", Kind: "Deployment"}`,
		)
	}
	return EnqueueMapped(func(_ context.Context, obj T) []reconcile.Request { return OwnersOf(obj, kind, o) })
}

// OwnersOf returns the requests that name the owners of obj which are of the given kind.
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

// Filter is the handler that lets h hear only of the events that all of ps let pass.
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
			if pass(predicate.Event[T]{Type: predicate.Delete, Object: gone.Object}) {
				h.OnDelete(ctx, gone, q)
			}
		}
	}
	return filtered
}
