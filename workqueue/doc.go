// Package workqueue decides which key is processed next, and when.
//
//	informer ─▶ event handlers ──Add──────────▶ ┌──────────────────────────┐
//	                                            │ ready ───▶ processing    │──Get──▶ worker ─▶ Reconcile
//	              scheduled adds ──AddAfter───▶ │  ▲  ▲          │         │            │
//	                                            │  │  └──────── dirty      │◀───Done────┘
//	    a worker's own retries ─AddRateLimited▶ │ delayed                  │
//	                                            └──────────────────────────┘
//
// A [Queue] stands between the event handlers of the informers, which observe changes, and the workers of a controller,
// which act on them. It holds keys, not events: a worker reads the state of the key's object when it processes the key.
// So adding a key that is already queued does not queue it again: it only records one more cause, if one is given, and
// may raise the key's priority.
//
// # What is promised
//
//   - After a key is added, it is handed out at least once, unless the queue is shut down first.
//   - A key is never handed to two workers at once. A key that is added while a worker processes it is handed out once
//     more after Done.
//   - Ready keys are handed out first in, first out, or in the order that the [Order] decides. Without an Order, other
//     keys go before keys of negative priority, but at most nine in a row.
//   - Delays expire in the order of their deadlines; delays with the same deadline expire in the order in which
//     they were set.
//   - Add cancels the key's requeue delay, which AddRateLimited or RequeueAfter set for a retry or a periodic run. It
//     never cancels a scheduled add, which AddAfter set.
//   - When ShutDown or Drain returns, no goroutine of the queue is left. Until then, the queue has a goroutine only
//     while a delay expires.
//
// Less formally: call Add as often as you like, from anywhere; it does not block. The queue does not promise which
// worker gets a key, that each Add has its own run, or that a delay expires exactly on time when the process is
// busy.
//
// # Reading order
//
// queue.go is the algorithm: the three sets, and Add, Get and Done. A first reading can end there. The sets are in
//
//   - ready.go: the keys that wait for a worker; lanes.go: their default order; order.go: priorities and fairness
//     instead.
//   - entry.go: what the queue knows about one key, such as whether it is dirty.
//   - processing.go: the keys that workers have.
//
// Options, delays and retries:
//
//   - add.go: the other ways to add a key; options.go: the options of a queue and of an add, and the Item that Get
//     returns.
//   - delay.go: keys that become ready later, and the one timer.
//   - run.go: the priority and the causes of a key's next run.
//   - ratelimiter.go: how long a key that failed waits.
//
// What happens around the algorithm:
//
//   - wait.go: which worker wakes up when a key is ready.
//   - drain.go: the two ways to shut down.
//   - stats.go and view.go: what a queue reports about itself.
//
// Optimisations, each entered by one call:
//
//   - table.go: a hash table that finds the entry of a key, and keeps idle entries for keys that come back.
//   - next.go: Done and Get in one step.
//
// The packages of internal hold data structures and algorithms: ring, delayheap, order, waitlist, ratelimit, and
// combining, which is the queue's lock. testdata shows each rule of the queue as a short script with its outcome. The
// measurements behind the design are in docs/decisions/0002-queue-core.md and 0012-contention.md.
package workqueue
