package reconcile

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

// counters is the live form of Stats.
type counters struct {
	events, adds, started, syncs, done, requeues, errors, terminal, timeouts, panics, retries, dropped, stale, hung, deferred atomic.Uint64
	// panicking counts the panics since the last reconcile that did not.
	panicking atomic.Uint64
}
