// Package source has the sources of controller-runtime.
//
// Source: controller-runtime v0.25.2 pkg/source.
package source

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/event"
	"github.com/flyball-dev/flyball/reconcile/handler"
	"github.com/flyball-dev/flyball/reconcile/predicate"
	"github.com/flyball-dev/flyball/reconcile/source"
	"github.com/flyball-dev/flyball/workqueue"
)

// Source is a reconcile.Source of requests.
type Source = reconcile.Source[reconcile.Request]

// Kind is source.Kind for a cache of a manager.
func Kind[T client.Object](cache manager.Cache, obj T, h event.Handler[T, reconcile.Request],
	ps ...event.Predicate[T],
) Source {
	inf, err := manager.InformerOf(cache, obj)
	if err != nil {
		return broken{source.Chan[reconcile.Request](fmt.Sprintf("%T", obj), nil), err}
	}
	funcs := handler.Of(h)
	for _, p := range ps {
		funcs = handler.Filter(funcs, predicate.Of(p))
	}
	return source.Kind(inf, funcs)
}

// broken is a source that cannot run.
type broken struct {
	Source
	err error
}

// Run implements reconcile.Source.
func (b broken) Run(context.Context, *reconcile.Sink[reconcile.Request], func()) error {
	return fmt.Errorf("watch %s: %w", b, b.err)
}

// Channel returns a source of events from outside the cluster. The handler's method Generic gets those that pass. A
// source serves one controller.
func Channel[T any](events <-chan event.TypedGenericEvent[T], h event.Handler[T, reconcile.Request],
	options ...ChannelOpt[T],
) Source {
	c := &channel[T]{Source: source.Chan[reconcile.Request]("channel", nil), events: events, handler: h}
	for _, option := range options {
		option(c)
	}
	return c
}

// ChannelOpt is an option of [Channel].
type ChannelOpt[T any] func(*channel[T])

// WithPredicates passes only the events that all of ps pass.
func WithPredicates[T any](ps ...event.Predicate[T]) ChannelOpt[T] {
	return func(c *channel[T]) { c.predicates = append(c.predicates, ps...) }
}

type channel[T any] struct {
	Source     // for all methods but Run
	events     <-chan event.TypedGenericEvent[T]
	handler    event.Handler[T, reconcile.Request]
	predicates []event.Predicate[T]
	running    atomic.Bool
}

// Run implements reconcile.Source.
func (c *channel[T]) Run(ctx context.Context, out *reconcile.Sink[reconcile.Request], synced func()) error {
	switch {
	case c.events == nil || c.handler == nil:
		return errors.New("source.Channel: the channel or the handler is nil")
	case !c.running.CompareAndSwap(false, true):
		return errors.New("source.Channel: two controllers watch the source; each would miss the events of the other")
	}
	defer c.running.Store(false)
	synced()
	for {
		select {
		case e, open := <-c.events:
			if !open {
				return nil
			}
			if c.passes(e) {
				why := workqueue.Cause{Source: c.String(), Event: "Generic", Time: time.Now()}
				c.handler.Generic(ctx, e, out.For(why))
			}
		case <-ctx.Done():
			return nil
		}
	}
}

func (c *channel[T]) passes(e event.TypedGenericEvent[T]) bool {
	for _, p := range c.predicates {
		if !p.Generic(e) {
			return false
		}
	}
	return true
}
