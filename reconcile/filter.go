package reconcile

import (
	"context"

	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile/predicate"
)

// Filter is the handler that lets h hear only of the events that all of ps let pass.
func Filter[T informer.Object, K comparable](h EventHandler[T, K], ps ...predicate.Predicate[T]) EventHandler[T, K] {
	pass := predicate.And(ps...)
	filtered := EventHandler[T, K]{}
	if h.OnAdd != nil {
		filtered.OnAdd = func(ctx context.Context, obj T, initial bool, q Enqueuer[K]) {
			if pass(predicate.Event[T]{Type: predicate.Add, Initial: initial, Object: obj}) {
				h.OnAdd(ctx, obj, initial, q)
			}
		}
	}
	if h.OnUpdate != nil {
		filtered.OnUpdate = func(ctx context.Context, old, obj T, q Enqueuer[K]) {
			if pass(predicate.Event[T]{Type: predicate.Update, Old: old, Object: obj}) {
				h.OnUpdate(ctx, old, obj, q)
			}
		}
	}
	if h.OnDelete != nil {
		filtered.OnDelete = func(ctx context.Context, gone informer.Deleted[T], q Enqueuer[K]) {
			if pass(predicate.Event[T]{Type: predicate.Delete, Object: gone.Object}) {
				h.OnDelete(ctx, gone, q)
			}
		}
	}
	return filtered
}
