// Package workqueue decides which key is worked on next, and when.
//
//	informer ─▶ event handlers ──Add──────────▶ ┌──────────────────────────┐
//	                                            │ ready ───▶ processing    │──Get──▶ worker ─▶ Reconcile
//	             explicit delays ──AddAfter───▶ │  ▲  ▲          │         │            │
//	                                            │  │  └──────── dirty      │◀───Done────┘
//	    a worker's own retries ─AddRateLimited▶ │ delayed                  │
//	                                            └──────────────────────────┘
//
// It stands between the event handlers of the informers, which know that something changed, and the workers of a
// controller, which make it so. A [Queue] holds keys, not events: what the key's object looks like is read when the work
// begins. So adding a key that already waits changes nothing but the list of its causes.
//
// # What is promised
//
//   - A key that is added is handed out after that, at least once, unless the queue is shut down first.
//   - A key is never handed to two workers at once. Added while it is worked on, it is handed out once more after Done.
//   - Ready keys are handed out first in, first out, or as the [Order] says. Delays end in the order of their deadlines, and
//     those of one instant in the order in which they were set.
//   - Add ends a delay that the loop set itself, never one that was asked for with AddAfter.
//   - When ShutDown or Drain returns, no goroutine of the queue is left. Before, there is one at most, while delays end.
//
// Less formally: call Add as often as you like, from anywhere; it does not block. Nothing is promised about which worker gets
// a key, nor that as many runs happen as there were adds, nor that a delay ends exactly on time when the
// process is busy.
//
// # Where to begin
//
// queue.go and entry.go are the algorithm; delay.go and delayheap.go the waiting; drain.go the end. wait.go says who is woken.
// table.go makes it fast and can be skipped. stats.go and view.go look inside. order.go, priority.go and fair.go are the orders; ratelimiter.go and the files it
// names are the limiters. testdata shows each rule as a short script with its outcome.
package workqueue
