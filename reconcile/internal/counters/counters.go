// Package counters counts what a controller does.
package counters

import "sync/atomic"

// Live has the counters of a controller. The zero value counts from zero.
type Live struct {
	Started, Events, Adds, Syncs, Done, Requeues, Errors, Terminal, Timeouts atomic.Uint64

	Panics, Retries, Dropped, Stale, Hung, Deferred atomic.Uint64
	// Panicking counts the panics since the last reconcile that did not.
	Panicking atomic.Uint64
}
