package loop

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/flyball-dev/flyball/exercises/kube"
)

// Loop calls Reconcile for the keys of Queue.
type Loop struct {
	Queue     kube.Queue
	Reconcile func(ctx context.Context, key string) (kube.Result, error)
	// Workers is how many keys are reconciled at once. MaxRetries is how often a key is retried; zero means no limit.
	Workers, MaxRetries int
}

// Run reconciles keys until the context is done.
func (l *Loop) Run(ctx context.Context) {
	var workers sync.WaitGroup
	for range max(l.Workers, 1) {
		workers.Go(func() {
			for l.processNextWorkItem(ctx) {
			}
		})
	}
	<-ctx.Done()
	l.Queue.ShutDown()
	workers.Wait()
}

// processNextWorkItem reconciles one key and decides when it runs again. It returns false when the worker must end.
func (l *Loop) processNextWorkItem(ctx context.Context) bool {
	key, ok := l.Queue.Get()
	if !ok {
		return false
	}
	defer l.Queue.Done(key)
	if ctx.Err() != nil {
		return false
	}
	result, err := l.syncHandler(context.WithoutCancel(ctx), key)
	switch {
	case err == nil:
		l.Queue.Forget(key)
		if result.RequeueAfter > 0 {
			l.Queue.AddAfter(key, result.RequeueAfter)
		}
	case errors.As(err, new(*terminalError)), l.MaxRetries > 0 && l.Queue.Failures(key) >= l.MaxRetries:
		l.Queue.Forget(key)
	default:
		l.Queue.AddRateLimited(key)
	}
	return true
}

// syncHandler calls Reconcile, and turns a panic into an error.
func (l *Loop) syncHandler(ctx context.Context, key string) (result kube.Result, err error) {
	defer func() {
		if value := recover(); value != nil {
			result, err = kube.Result{}, fmt.Errorf("panic: %v\n%s", value, debug.Stack())
		}
	}()
	return l.Reconcile(ctx, key)
}

// Terminal marks an error after which a retry cannot help.
func Terminal(err error) error { return &terminalError{err} }

type terminalError struct{ error }

func (e *terminalError) Unwrap() error { return e.error }
