// Package workctx hands the context that outlives the stop signal from the process to what it runs.
//
// A process has two moments at its end: the stop, which ends the context given to Run, and the drain
// deadline, which ends the context that work in flight was given. Only the process knows the second.
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

// From returns the context for work in flight: the one that [With] put into ctx, else one that holds the
// values of ctx and ends drain after ctx does. The caller must call release when no work is left.
func From(ctx context.Context, drain time.Duration) (work context.Context, release func()) {
	if process, ok := ctx.Value(key{}).(context.Context); ok {
		// The values of ctx are nearer to the work than those of the process.
		work, cancel := context.WithCancel(context.WithoutCancel(ctx))
		stop := context.AfterFunc(process, cancel)
		return work, func() { stop(); cancel() }
	}
	work, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{}) // closed by the function below when it has run; nobody sends
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
