// Package loop is task 08a: the loop that takes keys from a queue, reconciles them, and decides when each runs again.
//
// Package kube has the interface of the queue, and file queue.go has the one that the tests use.
// You write the loop of chapter 8. About 60 lines are enough.
//
// The contract:
//
//   - Run starts the workers. It returns when the context is done and all workers have ended. ShutDown wakes a worker
//     that waits in Get.
//   - After the context is done, no further reconcile begins, even if keys wait. A running reconcile is not disturbed:
//     its context is not cancelled.
//   - A reconcile without an error ends the backoff of its key. If the result has a RequeueAfter, the key runs again
//     after that time.
//   - After an error the key runs again, with a backoff, but at most MaxRetries times in a row, if that is not zero.
//     The key is then given up, and its backoff ends. If it is added again, it starts afresh.
//   - After an error made by Terminal, which other errors may wrap, the key is given up at once.
//   - A panic of the reconciler is an error like any other.
//   - In all these cases, Done is called for every key that Get returned.
//
// Begin with the first test: write Run with one worker. As in other controllers, the worker calls two methods.
// processNextWorkItem takes a key, calls syncHandler, decides when the key runs again, and calls Done. It returns false
// when the worker must end. syncHandler calls Reconcile and turns a panic into an error.
package loop

import (
	"context"

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
	panic("not written yet: Run")
}

// Terminal marks an error after which a retry cannot help.
func Terminal(err error) error {
	panic("not written yet: Terminal")
}
