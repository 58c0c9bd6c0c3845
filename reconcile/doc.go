// Package reconcile is the loop: it turns what changed into keys, and keys into calls of your code.
//
//	informer handlers ─events─▶ [Source] ─keys─▶ workqueue ─▶ processNextWorkItem ─▶ syncHandler ─▶ [Reconciler]
//	                                                ▲                                                    │
//	                                                └────────────── retry, RequeueAfter ◀───────────────┘
//
// A [Controller] owns one queue. Sources put keys into it, each with its cause. Workers take keys out, one worker a
// key at a time, and hand them to the [Reconciler]. What the reconciler returns decides what becomes of the key:
// done, again after a while, again with backoff, or given up.
//
// # Reading order
//
// The spine, in this order, is the whole loop: reconciler.go is what you write; controller.go runs it; source.go
// brings events in, through the handlers of handler.go; entry.go is the one record that the controller keeps of a
// key; worker.go takes a key, calls the reconciler and settles what becomes of the key; run.go is the context that
// the reconciler is called with.
//
// hooks.go is the seam to all else. The loop calls the rooms beside it at three moments: a key is admitted, a
// reconcile has settled, a key is forgotten. The rooms are below internal, and each can be read by itself: debounce
// puts off keys that come too often, contradiction those whose cache is wrong; forbidden reports a missing permission
// once; hotloop finds keys that trigger themselves; deadline finds reconciles that hang. Package multicluster uses
// the same hooks, through internal/loop of the module.
//
// The rest can be read when it is needed: options.go and errors.go; sources.go, further sources, and feeds.go, which
// runs all of them; warmup.go, which runs them in a process that does not lead yet; work.go and health.go, which look
// inside.
//
// # Why it ran
//
// Every key carries the causes it was queued for, through deduplication, into the reconciler's logger and [Causes].
// Every reconcile has a reconcileID in its log lines, and an owner for package client, which records what is written
// in the owner's name. A read that finds the cache behind such a write returns client.ErrStale, which puts the key
// off without counting as a failure. If others delete what a reconcile created before any cache shows it, no event
// comes; the key runs again all the same.
//
// # Health
//
// [Controller.Health] names sources that are not synced, reconciles that hang, and keys that have failed for long. It
// also reports that nothing but panics comes back, and that the server does not have what a cache holds.
//
// # Concurrency
//
// One key is never reconciled by two workers at once. A key that is added while it is being reconciled runs exactly
// once more, afterwards. Different keys run in parallel, up to [Options.Workers] of them. No code of a user is called
// while a lock is held: not a source, a reconciler, a rate limiter, nor the String method of a key.
//
// # Stopping
//
// There are two moments. When the context given to [Controller.Run] is done, no further key is started,
// but reconciles in flight go on with a context that is still alive: their writes succeed. When the drain
// deadline passes as well, that context is cancelled too; a reconcile that still does not return is
// reported by key in a [StuckError], and Run returns without it.
package reconcile
