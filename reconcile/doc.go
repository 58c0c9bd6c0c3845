// Package reconcile is the loop: its sources turn changes into keys, and its workers call your code for each key.
//
//	informer handlers ─events─▶ [Source] ─keys─▶ workqueue ─▶ processNextWorkItem ─▶ syncHandler ─▶ [Reconciler]
//	                                                ▲                                                    │
//	                                                └────────────── retry, RequeueAfter ◀───────────────┘
//
// A [Controller] owns one queue. Sources add keys to it, each with its cause. Workers take keys from it and pass them
// to the [Reconciler]. The result decides what happens to the key: it is done, it runs again after a delay or with
// backoff, or it is given up.
//
// # Reading order
//
// The loop itself is one file, worker.go. It shows how a worker takes a key and calls the reconciler, and what each
// outcome does to the queue. Read it second:
//
//   - reconciler.go is what you write: a [Reconciler], its key and its [Result].
//   - worker.go is the loop.
//   - controller.go is what you call: the methods of a [Controller].
//   - engine.go has the fields behind a Controller, and Run, which starts and stops everything.
//   - source.go is how keys come in: a [Source] adds them to a [Sink].
//   - entry.go is what the controller remembers about a key. Most keys have an entry only while they run.
//   - checks.go calls the checks beside the loop, once before and once after each reconcile.
//   - run.go is the context that a reconciler gets. [Causes] reads from it why the key runs.
//   - forget.go drops what the controller remembers about a key.
//
// Each check is a small package below internal. Read them on their own, or skip them:
//
//   - debounce delays keys that are added too often.
//   - contradiction delays keys whose writes show that the cache is wrong.
//   - forbidden reports a missing permission once, not for each key.
//   - hotloop finds keys that trigger themselves.
//   - deadline finds reconciles that hang.
//
// The other packages below internal are parts of the controller: feed runs the sources, also in a process that does not
// lead yet; waker runs a key again if no event reports that its write was undone; overdue formats what has lasted too
// long, for Health; counters, ctxkey and text are a few lines each.
//
// Read the other files when you need them: options.go has the settings, errors.go the errors, work.go the counters and
// the work that is left, and health.go the problems.
//
// Three packages below this one are for sources: package source has constructors for them, package handler turns the
// events of an informer into keys, and package predicate drops events that need no reconcile.
//
// # Why it ran
//
// Every key carries its causes, the reasons why it was queued. The queue merges the causes of equal keys. The
// reconciler finds them in its logger and with [Causes]. Every reconcile has a reconcileID in its log lines. The
// context of a reconcile also names an owner, under which package client records what the reconcile writes. A read that
// finds the cache behind such a write returns client.ErrStale. The key then runs again a little later, and this does
// not count as a failure. If another client deletes what a reconcile created before any cache shows it, no event comes;
// package waker then queues the key.
//
// # Health
//
// [Controller.Health] names sources that are not synced, reconciles that hang, and keys that have been failing for
// long. It also reports if all recent reconciles panicked, or if the server contradicts a cache.
//
// # Concurrency
//
// Two workers never reconcile one key at once. A key that is added while it is being reconciled runs exactly once more,
// afterwards. Different keys run in parallel, up to [Options.Workers] of them. The controller holds no lock when it
// calls code of a user: a source, a reconciler, a rate limiter, or the String method of a key.
//
// # Stopping
//
// A stop has two phases. When the context given to [Controller.Run] is done, no further key is started, but reconciles
// in flight go on with a context that is still alive: their writes succeed. When the drain deadline passes as well,
// that context is cancelled too. A reconcile that still does not return is reported by key in a [StuckError], and Run
// returns without it.
package reconcile
