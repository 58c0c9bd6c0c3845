// Package handler has the event handlers of controller-runtime. The builder accepts them as it does those of
// reconcile/handler. Their methods add to a reconcile.Enqueuer, where those of controller-runtime have client-go's
// queue.
//
// Source: controller-runtime v0.25.2 pkg/handler.
package handler

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/internal/misuse"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/event"
	"github.com/flyball-dev/flyball/reconcile/handler"
)

// The interface of handlers, the functions that make them, and a handler made of functions.
type (
	EventHandler                           = TypedEventHandler[client.Object, reconcile.Request]
	TypedEventHandler[T any, K comparable] = event.Handler[T, K]
	MapFunc                                = TypedMapFunc[client.Object, reconcile.Request]
	TypedMapFunc[T any, K comparable]      func(context.Context, T) []K
	EnqueueRequestForObject                = TypedEnqueueRequestForObject[client.Object]
	OwnerOption                            func(*handler.OwnerOptions)
)

// EnqueueRequestsFromMapFunc is handler.EnqueueMapped.
func EnqueueRequestsFromMapFunc(f MapFunc) EventHandler { return TypedEnqueueRequestsFromMapFunc(f) }

// TypedEnqueueRequestsFromMapFunc is handler.EnqueueMapped.
func TypedEnqueueRequestsFromMapFunc[T client.Object, K comparable](f TypedMapFunc[T, K]) TypedEventHandler[T, K] {
	return handler.EnqueueMapped(f)
}

// TypedEnqueueRequestForObject queues the object itself, as handler.EnqueueObject does.
type TypedEnqueueRequestForObject[T client.Object] struct{}

type enqueuer = reconcile.Enqueuer[reconcile.Request]

// Create implements [event.Handler].
func (*TypedEnqueueRequestForObject[T]) Create(_ context.Context, e event.TypedCreateEvent[T], q enqueuer) {
	add(q, e.Object)
}

// Update queues the new state, or the old one if the event has no other.
func (*TypedEnqueueRequestForObject[T]) Update(_ context.Context, e event.TypedUpdateEvent[T], q enqueuer) {
	if misuse.IsNil(e.ObjectNew) {
		e.ObjectNew = e.ObjectOld
	}
	add(q, e.ObjectNew)
}

// Delete implements [event.Handler].
func (*TypedEnqueueRequestForObject[T]) Delete(_ context.Context, e event.TypedDeleteEvent[T], q enqueuer) {
	add(q, e.Object)
}

// Generic implements [event.Handler].
func (*TypedEnqueueRequestForObject[T]) Generic(_ context.Context, e event.TypedGenericEvent[T], q enqueuer) {
	add(q, e.Object)
}

// add queues obj. An event without an object is ignored.
func add(q enqueuer, obj client.Object) {
	if !misuse.IsNil(obj) {
		q.Add(reconcile.RequestFor(obj))
	}
}

// EnqueueRequestForOwner is handler.EnqueueOwner for every owner of the kind of owner. The mapper tells whether the
// owners have a namespace; an event is ignored as long as it cannot. EnqueueRequestForOwner panics if the scheme does
// not have exactly one kind for owner.
func EnqueueRequestForOwner(scheme *runtime.Scheme, mapper meta.RESTMapper, owner client.Object,
	options ...OwnerOption,
) EventHandler {
	kinds, _, err := scheme.ObjectKinds(owner)
	if err == nil && len(kinds) != 1 {
		err = fmt.Errorf("%T has %d kinds, want 1: %v", owner, len(kinds), kinds)
	}
	if err != nil {
		panic(fmt.Sprintf("handler: EnqueueRequestForOwner: %v", err))
	}
	o := handler.OwnerOptions{EveryOwner: true}
	for _, option := range options {
		option(&o)
	}
	return handler.EnqueueMapped(func(_ context.Context, obj client.Object) []reconcile.Request {
		return ownersOf(obj, kinds[0], mapper, o)
	})
}

func ownersOf(obj client.Object, kind schema.GroupVersionKind, mapper meta.RESTMapper, o handler.OwnerOptions,
) []reconcile.Request {
	owners := handler.OwnersOf(obj, kind.GroupKind(), o)
	if len(owners) == 0 {
		return nil
	}
	mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		klog.ErrorS(err, "Event ignored: no mapping for the kind of the owner", "kind", kind, "object", klog.KObj(obj))
		return nil
	}
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		for i := range owners {
			owners[i].Namespace = ""
		}
	}
	return owners
}

// OnlyControllerOwner restricts [EnqueueRequestForOwner] to the controller of an object.
func OnlyControllerOwner() OwnerOption {
	return func(o *handler.OwnerOptions) { o.EveryOwner = false }
}
