// Package informer keeps a local, indexed copy of the objects of an API resource, and calls handlers when the copy
// changes.
//
// It is the first half of a controller: what the cluster looks like. The second half is the workqueue: which key to
// work on next. The two meet in an event handler that turns a change into a key.
//
// # The pipeline
//
//	 API server                                      one batch at a time
//	    │ list, watch                            ┌────────────────────────────┐
//	    ▼                                        │                            ▼
//	ListerWatcher ──▶ Reflector ──deltas──▶ DeltaFIFO ──everything queued──▶ Indexer ──changes──▶ fan-out ──▶ Handler
//	 (listwatch)      (reflector)           (deltafifo)                     (indexer)      (internal/fanout)  Handler
//	                                                                            ▲                             Handler
//	                                                             Get, List, ByIndex, All, AllByIndex
//
// Each stage is a folder; read them in that order. A ListerWatcher talks to the server. The Reflector is a state
// machine that keeps listing and watching, whatever the server does. It appends what it receives to the DeltaFIFO, an
// ordered log. One goroutine takes everything queued in one step and applies it to the Indexer as one transaction. The
// real changes come out as an immutable batch, which every [Handler] reads with a cursor of its own.
//
// This folder joins the stages. Read it in this order:
//
//   - informer.go: what users can do with a cache.
//   - sharedinformer.go: the stages joined; consume.go: the loop that applies batches.
//   - sync.go: waiting for the first list; health.go: the state of an informer, and its counters.
//   - factory.go and start.go: one informer for all callers that ask for the same objects.
//   - identity.go: which informers hold the same objects.
//   - view.go: a factory's cache by Go type.
//   - names.go: second names for types of other packages.
//   - cache.go: what a factory offers to package writes: its caches, their batches, and a new list.
//
// A first reading can skip internal/mutation, which finds handlers that modify cached objects, and internal/lean, which
// decodes objects into little memory.
//
// # The way of an object
//
// An object passes these files from a watch frame to the worker that calls the reconciler:
//
//  1. informer/listwatch/rest.go: the body of the response is read
//  2. informer/internal/wire/frames.go: the body is split into frames
//  3. informer/internal/wire/decode.go: the object in a frame is decoded (by internal/lean, unless that is turned off)
//  4. informer/reflector/watch.go: the event becomes a delta
//  5. informer/deltafifo/deltafifo.go: the delta waits in the log
//  6. informer/consume.go: the consumer takes the batch
//  7. informer/indexer/apply.go: the batch becomes changes of the cache
//  8. informer/indexer/index.go: the object is put into its buckets
//  9. informer/view.go: index functions and handlers of a Go type are called
//  10. informer/internal/fanout/fanout.go: the changes wait in the log of the handlers
//  11. reconcile/source/kind.go: the handler of a controller gets the event
//  12. reconcile/handler/handler.go: the event becomes keys
//  13. reconcile/internal/feed/intake.go: the keys get the event as their cause
//  14. reconcile/engine.go: the controller counts the keys
//  15. workqueue/add.go: the options of an add
//  16. workqueue/queue.go: a key waits until a worker takes it
//  17. reconcile/worker.go: a worker calls the reconciler
//
// TestWayOfAnObject in package reconcile compares this list with real call stacks.
//
// # Versions
//
// Three versions describe how far a cache has come. The position of a reflector is the version from which its next
// watch begins. The watermark of a cache is the version up to which the cache is complete; it follows the position as
// soon as the batch is applied. A minimum version, in package writes, is one that a cache has to reach before a read
// may use it.
//
// Versions can only be compared within one history of a server. A history ends when the server is restored from a
// backup or another server takes its place. A factory numbers the histories that its informers notice:
// [Factory.History] is the number of the newest one.
//
// # What is promised
//
//   - A handler sees the states of one object in the server's order. States may be left out, because a list after a
//     watch was cut off does not show what happened in between. They are never reordered or repeated.
//   - The cache holds a state before any handler is called for it.
//   - One goroutine at a time calls a handler. Handlers never wait for one another, nor does the cache for them.
//   - An object that is deleted and created again under its name is a delete and an add, even if only a relist shows
//     the result: the UID identifies an object.
//   - The watermark ([Informer].ResourceVersion) is the resource version up to which the cache is complete. It never
//     moves backwards, unless the server's own history went back or another server took its place. All caches of a
//     factory are then rebuilt, which is logged and counted.
//   - Nothing is dropped silently. An object that cannot be decoded stays in the cache in its last readable state,
//     and Health, Stats and the log show it until it is readable again; all other objects go on. An object that
//     cannot be transformed, or an answer that is not valid, stops the watermark, and Health shows it until a list
//     succeeds.
//
// # What is not promised
//
//   - An order between different objects.
//   - That a handler sees every state. A handler that is too slow gets the newest state of each object, not all
//     states in between; see [HandlerOptions].
//   - That a program may modify an object from the cache. It is shared, so copy it first. With the environment variable
//     KUBE_CACHE_MUTATION_DETECTOR=true, which client-go knows too, informers log the handlers that modify cached
//     objects.
//
// # Concurrency
//
// An idle informer runs two goroutines: the reflector's, blocked on the response body, and the consumer of the
// DeltaFIFO. A handler has a goroutine only while it has something to deliver: one of its own, or that of the consumer
// if this has nothing else to do. Constructors start nothing. Run blocks until everything that it started has ended.
package informer
