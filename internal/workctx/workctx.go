// Package workctx passes the context for work in flight, which outlives the stop, from a process to what it runs.
//
// A process ends in two phases: the stop ends the context given to Run, and the drain deadline ends the context for
// work in flight. Only the process knows the deadline.
package workctx

import (
	"context"
	"sync"
	"time"
)

type key struct{}

// With returns a context that ends as ctx does and carries work, the context for work in flight.
func With(ctx, work context.Context) context.Context {
	return context.WithValue(ctx, key{}, work)
}

// From returns the context for work in flight: the one that [With] put into ctx, or else a context with the values of
// ctx that ends drain after ctx does. The caller must call release when no work is left.
func From(ctx context.Context, drain time.Duration) (work context.Context, release func()) {
	if process, ok := ctx.Value(key{}).(context.Context); ok {
		// Use the values of ctx, which are closer to the work than those of the process.
		work, cancel := context.WithCancel(context.WithoutCancel(ctx))
		stop := context.AfterFunc(process, cancel)
		return work, func() { stop(); cancel() }
	}
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{}) // closed by the function below when it has run
	disarm := context.AfterFunc(ctx, func() {
		defer close(ended)
		deadline := time.NewTimer(drain)
		defer deadline.Stop()
		select {
		case <-deadline.C:
			cancel()
		case <-work.Done():
		}
	})
	return work, sync.OnceFunc(func() {
		cancel()
		if !disarm() {
			<-ended
		}
	})
}
