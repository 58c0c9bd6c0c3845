// Package reconcile is the loop: it turns changes into keys, and calls your code for each key.
//
//	informer handlers ─events─▶ [Source] ─keys─▶ workqueue ─▶ processNextWorkItem ─▶ syncHandler ─▶ [Reconciler]
//	                                                ▲                                                    │
//	                                                └────────────── retry, RequeueAfter ◀───────────────┘
//
// A [Controller] owns one queue. Sources add keys to it, each with its cause. Workers take keys from it and pass them
// to the [Reconciler]. The result decides what becomes of the key: it is done, or it runs again after a while or with
// backoff, or it is given up.
//
// # Reading order
//
// The loop itself is one file, worker.go: how a worker takes a key, calls the reconciler, and what each outcome does to
// the queue. Read it second:
//
//   - reconciler.go is what you write: a [Reconciler], its key and its [Result].
//   - worker.go is the loop.
//   - controller.go is what you call: the methods of a [Controller].
//   - engine.go is what a Controller is made of, and its life: Run, and how it stops.
//   - source.go is how keys come in: a [Source] adds them to a [Sink].
//   - entry.go is what the controller remembers about a key. Most keys have an entry only while they run.
//   - checks.go calls the checks beside the loop, once before and once after each reconcile.
//   - run.go is the context of a reconcile. It knows why the key ran.
//   - forget.go drops what is remembered about a key.
//
// Each check is a small package below internal, to be read on its own or to be skipped:
//
//   - debounce puts off keys that come too often.
//   - contradiction puts off keys whose cache is wrong.
//   - forbidden reports a missing permission once, not for each key.
//   - hotloop finds keys that trigger themselves.
//   - deadline finds reconciles that hang.
//
// The other packages below internal are parts of the controller: feed runs the sources, also in a process that does not
// lead yet; waker runs a key again if no event reports what became of its write; overdue puts long troubles into words;
// counters, ctxkey and text are a few lines each.
//
// Read the other files when you need them: options.go has the settings, errors.go the errors, work.go what was done and
// what is left to do, health.go what is wrong.
//
// The packages below this one make sources: package source has them, package handler turns the events of an informer
// into keys, and package predicate decides which events matter.
//
// # Why it ran
//
// Every key carries the causes that it was queued for. They survive deduplication, and reach the reconciler through its
// logger and [Causes]. Every reconcile has a reconcileID in its log lines. It also has an owner for package client,
// which records under this owner what the reconcile writes. A read that finds the cache behind such a write returns
// client.ErrStale, which puts the key off without counting as a failure. Others may delete what a reconcile created
// before any cache shows it. Then no event comes, but the key runs again all the same.
//
// # Health
//
// [Controller.Health] names sources that are not synced, reconciles that hang, and keys that have failed for long. It
// also reports that all recent reconciles panicked, and that the server contradicts a cache.
//
// # Concurrency
//
// Two workers never reconcile one key at once. A key that is added while it is being reconciled runs exactly once more,
// afterwards. Different keys run in parallel, up to [Options.Workers] of them. The controller holds no lock when it
// calls code of a user: a source, a reconciler, a rate limiter, or the String method of a key.
//
// # Stopping
//
// A stop has two moments. When the context given to [Controller.Run] is done, no further key is started, but reconciles
// in flight go on with a context that is still alive: their writes succeed. When the drain deadline passes as well,
// that context is cancelled too. A reconcile that still does not return is reported by key in a [StuckError], and Run
// returns without it.
package reconcile
