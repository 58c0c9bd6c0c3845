// Package counters counts what a controller does.
package counters

import "sync/atomic"

// Live has the counters of a controller, except those that package reconcile keeps for each outcome.
type Live struct {
	Started, Events, Adds, Timeouts, Panics, Hung, Deferred atomic.Uint64
	// Panicking counts the reconciles that panicked since the last one that did not.
	Panicking atomic.Uint64
}
