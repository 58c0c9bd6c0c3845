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
// So adding a key that is already queued changes nothing but the list of its causes.
//
// # What is promised
//
//   - After a key is added, it is handed out at least once, unless the queue is shut down first.
//   - A key is never handed to two workers at once. A key that is added while a worker processes it is handed out once
//     more after Done.
//   - Ready keys are handed out first in, first out, or in the order that the [Order] decides. Delays expire in the
//     order of their deadlines; delays with the same deadline expire in the order in which they were set.
//   - Add cancels a delay that the loop itself set (a retry or a periodic run). It never cancels a delay set by
//     AddAfter.
//   - When ShutDown or Drain returns, no goroutine of the queue is left. Before that there is at most one, while a
//     delay expires.
//
// Less formally: call Add as often as you like, from anywhere; it does not block. The queue does not promise which
// worker gets a key, that each Add has its own run, or that a delay expires exactly on time when the process is
// busy.
//
// # Reading order
//
// Read the algorithm first: queue.go, entry.go, add.go and run.go. delay.go and delayheap.go hold the delays, wait.go
// decides which worker wakes up, and drain.go shuts the queue down. options.go and cause.go define what goes in and
// what comes out; stats.go, view.go and metrics.go report what is inside. order.go defines the Order, with two
// implementations in internal/order. ratelimiter.go defines the rate limiters; they are in bucket.go,
// exponential.go and fastslow.go, and failures.go counts for the last two. table.go and internal/ring are the data
// structures, and a first reading can skip them. testdata shows each rule as a short script with its outcome.
package workqueue
