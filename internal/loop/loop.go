// Package loop is the way into a controller of package reconcile that is open to package multicluster, and to nobody
// outside of this module: a controller of many clusters is fed and held back from without, and forgets the keys of a
// cluster that left.
package loop

import (
	"time"

	"github.com/flyball-dev/flyball/workqueue"
)

// NameKey is the key under which the context of a reconcile has its name: the controller and the key, as a string.
type NameKey struct{}

// Settings are what is set before Run.
type Settings[K comparable] struct {
	// Admitted is called when a worker has taken a key, without a lock held. It reports whether the key may be
	// reconciled. One that may not is done with: the callee has seen to it.
	Admitted func(key K) bool
	// SlowAfter is how long a reconcile keeps its slot of the queue's concurrency limit, unless it ends earlier. Zero
	// or less: as long as it takes.
	SlowAfter time.Duration
}

// Handle is a controller seen from package multicluster.
//
// Concurrency: Set is called before Run, all others from any goroutine.
type Handle[K comparable] interface {
	Set(s Settings[K])
	// Add queues key as o asks for.
	Add(key K, o workqueue.AddOptions)
	// Forget forgets what became of key: its failures, backoff and requeue delay. One that is in flight is forgotten
	// when its run ends, whatever comes of it.
	Forget(key K)
	// ForgetAll forgets the keys that match, and their scheduled adds, too. match is called without a lock held. Keys
	// that are ready come to Settings.Admitted once more.
	ForgetAll(match func(key K) bool)
	// Alive is nil while the controller runs and does not panic all the time.
	Alive() error
	// Hung returns since when those reconciles run that take longer than Options.HungAfter.
	Hung() map[K]time.Time
}

// handleOf is set by package reconcile, which this package cannot import.
var handleOf func(controller any) any

// Provide is called by package reconcile, once.
func Provide(of func(controller any) any) { handleOf = of }

// Of returns the handle of a *reconcile.Controller[K].
func Of[K comparable](controller any) Handle[K] { return handleOf(controller).(Handle[K]) }
