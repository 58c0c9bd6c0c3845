// Package loop is task 08a: the loop that takes keys from a queue, reconciles them, and decides what becomes of each.
//
// The queue is given, in queue.go. You write the loop of chapter 8. About 60 lines are enough.
//
// The contract:
//
//   - Run starts the workers and returns when the context is done and all of them have ended. A worker that waits in
//     Get is woken by ShutDown.
//   - After the context is done no further key is begun, even if some wait. A reconcile that runs is not disturbed: its
//     context stays alive.
//   - A reconcile without an error ends the backoff of its key. If the result asks for it, the key runs again after
//     RequeueAfter.
//   - An error puts the key back with a backoff, but at most MaxRetries times in a row, if that is not zero. Then the
//     key is given up, and its backoff ends: when somebody adds it again, it begins anew.
//   - An error made by Terminal gives the key up at once. It may be wrapped in other errors.
//   - A panic of the reconciler is an error like any other.
//   - Whatever happens, Done is called for every key that Get returned.
//
// Begin with the first test: write Run with one worker that calls two methods of yours, as all controllers do.
// processNextWorkItem takes a key, settles it and calls Done. It returns false when the worker must end. syncHandler,
// which it calls, calls Reconcile and turns a panic into an error.
package loop

import (
	"context"
	"time"
)

// Result says when a key runs again that did not fail.
type Result struct {
	// RequeueAfter is zero if the key need not run again.
	RequeueAfter time.Duration
}

// Loop calls Reconcile for the keys of Queue.
type Loop struct {
	Queue     *Queue
	Reconcile func(ctx context.Context, key string) (Result, error)
	// Workers is how many keys are reconciled at once. MaxRetries is how often a key is retried; zero means for ever.
	Workers, MaxRetries int
}

// Run reconciles keys until the context is done.
func (l *Loop) Run(ctx context.Context) {
	panic("not written yet: Run")
}

// Terminal marks an error as one that trying again cannot mend.
func Terminal(err error) error {
	panic("not written yet: Terminal")
}
