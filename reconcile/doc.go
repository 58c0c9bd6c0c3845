// Package reconcile is the loop: it turns what changed into keys, and keys into calls of your code.
//
//	informer handlers ─events─▶ [Source] ─keys─▶ workqueue ─▶ processNextWorkItem ─▶ syncHandler ─▶ [Reconciler]
//	                                                ▲                                                    │
//	                                                └────────────── retry, RequeueAfter ◀───────────────┘
//
// A [Controller] owns one queue. Sources put keys into it, each with the cause it has; workers take keys
// out, one worker a key at a time, and hand them to the [Reconciler]. What the reconciler returns decides
// what becomes of the key: done, again after a while, again with backoff, or given up.
//
// # Why it ran
//
// Every key carries the causes it was queued for, through deduplication, into the reconciler's logger and [Causes]. Every
// reconcile has a reconcileID in its log lines, and an owner under which package client books what it writes: a read that
// finds the cache behind such a write returns client.ErrStale, which puts the key off without counting as a failure. What a
// reconcile created and others deleted, before any cache could tell, runs its key again: no event would.
//
// # Health
//
// [Controller.Health] names sources that are not synced, reconciles that hang, keys that have failed for long, and
// says so when nothing but panics comes back, or when the server says that it does not have what a cache holds: see [Contradicted].
//
// # Concurrency
//
// One key is never reconciled by two workers at once. A key that is added while it is being reconciled
// runs exactly once more, afterwards. Different keys run in parallel, as many as [Options.Workers] says.
//
// # Stopping
//
// There are two moments. When the context given to [Controller.Run] is done, no further key is started,
// but reconciles in flight go on with a context that is still alive: their writes succeed. When the drain
// deadline passes as well, that context is cancelled too; a reconcile that still does not return is
// reported by key in a [StuckError], and Run returns without it.
package reconcile
