// Package clientgo offers Flyball's queue under the names of k8s.io/client-go/util/workqueue. A program that imports
// this package instead behaves the same, except for the differences listed below. It compiles unchanged unless it uses
// one of the names that docs/swap-in.md lists as absent, most of which client-go has deprecated:
//
//	your code ──workqueue.TypedRateLimitingInterface[T]──▶ this package ──▶ workqueue.Queue[T]
//
// The interfaces are aliases of client-go's, so a queue of this package fits wherever one of
// client-go's does, for example in controller-runtime's controller.Options.NewQueue. The implementation is Flyball's.
//
// The remaining differences are deliberate, and docs/divergence.md lists them:
//
//   - ShutDownWithDrain waits for queued keys and for keys added again, not only for those in processing, and releases
//     all its callers.
//   - Done ignores a key that is not being processed; it cannot put a key into the queue twice.
//   - A Clock other than the real one causes a panic, because the queue would never read it. Use testing/synctest
//     instead, which controls the time of every package.
//   - A Queue in the config of a queue without delays causes a panic: it would be called under the queue's lock.
//   - [SetProvider] affects only the queues of this package.
package clientgo
