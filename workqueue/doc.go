// Package workqueue decides which key is worked on next, and when.
//
//	event handlers ──Add──────▶ ┌───────────────────────┐
//	                            │  ready ──▶ processing │──Get──▶ worker ──Done──▶
//	explicit delays ─AddAfter─▶ │    ▲           │      │
//	own retries ─AddRateLimited▶│  delayed     dirty    │
//	                            └───────────────────────┘
//
// It stands between the event handlers of the informers, which know that something changed, and the workers of a
// controller, which make it so. A [Queue] holds keys, not events: adding a key that already waits changes nothing but
// its list of causes, and a key is never handed to two workers at once.
package workqueue
