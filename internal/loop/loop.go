// Package loop gives package multicluster access to a controller of package reconcile that users do not have. A
// controller of many clusters adds keys from outside, holds keys back, and forgets the keys of a cluster that left.
package loop

import "time"

// NameKey is the context key of a reconcile's name: the controller and the key, as a string.
type NameKey struct{}

// Settings are set before Run.
type Settings[K comparable] struct {
	// Admitted is called with no lock held when a worker has taken a key. It reports whether the key may be reconciled.
	// A key that may not is done: Admitted has arranged for it to come back, if it should.
	Admitted func(key K) bool
	// SlowAfter is how long a reconcile keeps its slot of the queue's concurrency limit, unless it ends earlier. Zero
	// or less means until it ends.
	SlowAfter time.Duration
}

// Handle is a controller as package multicluster uses it. O is workqueue.AddOptions.
//
// Concurrency: Set is called before Run, all other methods from any goroutine.
type Handle[K comparable, O any] interface {
	Set(s Settings[K])
	// Add queues key with the options o.
	Add(key K, o O)
	// Forget drops the history of key: its failures, backoff and requeue delay. The history of a key in flight is
	// dropped when its run ends, whatever the result.
	Forget(key K)
	// ForgetAll does the same for all keys that match, and drops their scheduled adds. match is called with no lock
	// held. Keys that are ready are passed to Settings.Admitted once more.
	ForgetAll(match func(key K) bool)
	// Alive returns nil while the controller runs and does not panic all the time.
	Alive() error
	// Hung returns the reconciles that have run for longer than Options.HungAfter, with their start times.
	Hung() map[K]time.Time
}

// handleOf is set by package reconcile, which this package cannot import.
var handleOf func(controller any) any

// Provide is called by package reconcile, once.
func Provide(of func(controller any) any) { handleOf = of }

// Of returns the handle of a *reconcile.Controller[K].
func Of[K comparable, O any](controller any) Handle[K, O] { return handleOf(controller).(Handle[K, O]) }
