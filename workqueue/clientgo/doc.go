// Package clientgo is Flyball's queue under the names of k8s.io/client-go/util/workqueue. A program that imports this
// package instead compiles and behaves as before, less the faults:
//
//	your code ──workqueue.TypedRateLimitingInterface[T]──▶ this package ──▶ workqueue.Queue[T]
//
// Interfaces and metrics types are client-go's own, so a queue from here fits wherever one of client-go's is asked for: in
// controller-runtime's controller.Options.NewQueue, for example. Everything that does something is Flyball's.
//
// Where client-go's rule differs from Flyball's own, this package keeps client-go's: Add leaves a pending AddAfter alone.
// The differences that remain are meant, and listed in docs/divergence.md:
//
//   - ShutDownWithDrain waits for queued keys and for keys added again, not only for those in processing, and releases
//     all its callers.
//   - Done of a key that nobody works on is ignored; it cannot put the key into the queue twice.
//   - A Clock that is not the real one is refused with a panic, for it would never be read: testing/synctest stops the
//     clock of every package at once.
//   - [SetProvider] concerns the queues of this package only.
package clientgo
