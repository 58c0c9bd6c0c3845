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
// Read these eight files in this order. They are the whole loop.
//
//   - reconciler.go is what you write: a [Reconciler], the key it is given, and the [Result] it returns.
//   - controller.go is what a user can do with a [Controller].
//   - engine.go is what is behind it, and its life: Run, and how it stops.
//   - source.go is how keys come in: a [Source] puts them into a [Sink].
//   - entry.go is all that the controller knows of a key: one record, which most keys have only while they run.
//   - worker.go takes a key, calls the reconciler, and decides what becomes of the key.
//   - run.go is the context that the reconciler is called with. It knows why the key ran.
//   - hooks.go is where the loop calls all that stands beside it, at three moments: a key is admitted, a reconcile has
//     settled, a key is forgotten.
//
// What stands beside the loop is in packages below internal, the rooms. Each can be read by itself, or skipped:
//
//   - feed runs the sources, also in a process that does not lead yet, and takes their keys.
//   - debounce puts off keys that come too often.
//   - contradiction puts off keys whose cache is wrong.
//   - forbidden reports a missing permission once, not for each key.
//   - hotloop finds keys that trigger themselves.
//   - deadline finds reconciles that hang.
//   - complaint puts keys that are not well into words; logkey makes loggers cheap; counters counts.
//   - waker runs a key again whose own write no event reports.
//
// Read the other files when you need them: options.go, the settings; errors.go, the errors; work.go, what was done and
// what is left to do; health.go, what is wrong.
//
// The packages below this one make sources: package source has them, package handler turns the events of an informer
// into keys, and package predicate tells which events matter.
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
