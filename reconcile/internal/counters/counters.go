// Package counters counts what a controller does.
package counters

import "sync/atomic"

// Stats counts what a controller has done since it was made.
type Stats struct {
	Events   uint64 // changes that its sources heard of
	Adds     uint64 // keys that the sources made of them, or Enqueue was given, before the queue merges equal ones
	Syncs    uint64 // reconciles that ended
	Done     uint64 // reconciles after which there was nothing more to do
	Requeues uint64 // reconciles that asked to be repeated (Result.RequeueAfter)
	Errors   uint64 // reconciles that ended with an error, terminal ones and panics among them
	Terminal uint64 // reconciles that ended with an error from Terminal
	Timeouts uint64 // reconciles that took longer than Options.Timeout
	Panics   uint64 // reconciles that panicked
	Retries  uint64 // keys put back with backoff
	Dropped  uint64 // keys given up: terminal errors, and those past MaxRetries
	Stale    uint64 // reconciles put off because the cache was behind a write of this process
	Hung     uint64 // reconciles that took longer than Options.HungAfter, those that ended after all among them
	Deferred uint64 // times that a key was put off by Options.MinInterval or Debounce
	Workers  int    // reconciles that may run at once
	InFlight int    // reconciles running now
	Peak     int    // the most that ever ran at once
	Queued   int    // keys ready to run now
	Held     int    // keys that Warmup holds back until Run is called
}

// Live is the live form of [Stats]. The zero value counts from zero.
type Live struct {
	Started, Events, Adds, Syncs, Done, Requeues, Errors, Terminal, Timeouts atomic.Uint64

	Panics, Retries, Dropped, Stale, Hung, Deferred atomic.Uint64
	// Panicking counts the panics since the last reconcile that did not.
	Panicking atomic.Uint64
}

// Stats returns a snapshot of the counters. The fields that are no counters are zero.
func (l *Live) Stats() Stats {
	return Stats{
		Events:   l.Events.Load(),
		Adds:     l.Adds.Load(),
		Syncs:    l.Syncs.Load(),
		Done:     l.Done.Load(),
		Requeues: l.Requeues.Load(),
		Errors:   l.Errors.Load(),
		Terminal: l.Terminal.Load(),
		Timeouts: l.Timeouts.Load(),
		Panics:   l.Panics.Load(),
		Retries:  l.Retries.Load(),
		Dropped:  l.Dropped.Load(),
		Stale:    l.Stale.Load(),
		Hung:     l.Hung.Load(),
		Deferred: l.Deferred.Load(),
	}
}
