// Package informer keeps a local, indexed copy of the objects of an API resource, and tells handlers what changes
// in it.
//
// It is the first half of a controller: what the cluster looks like. The second half, which key to work on next, is the
// workqueue; the two meet in an event handler that turns a change into a key.
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
// Each stage is a folder; read them in that order. A ListerWatcher speaks to the server. The Reflector is a state
// machine that keeps listing and watching whatever the server does. It appends what it learns to the DeltaFIFO, an
// ordered log. One goroutine takes everything queued in one step and applies it to the Indexer as one transaction.
// What really changed comes out as an immutable batch, which every [Handler] reads with a cursor of its own.
//
// This folder joins the stages. Read it in this order:
//
//   - informer.go: what a user of a cache can do with it.
//   - sharedinformer.go: the stages joined, and the one loop that applies batches.
//   - sync.go: waiting for the first list; health.go: how an informer stands with its server, and what it did.
//   - factory.go and start.go: one informer for all that ask for the same objects.
//   - identity.go: which informers hold the same objects.
//   - view.go: the cache of a factory by Go type.
//   - names.go: the names of other packages that users meet.
//   - cache.go: what a factory offers to package writes: its caches, their batches, and a new list.
//
// Beside the path lie internal/mutation, which names the handler that changes a cached object, and internal/lean, which
// decodes with little memory.
//
// # The way of an object
//
// From a watch frame to the handler that queues the object's key, the files that are entered:
//
//  1. informer/listwatch/rest.go: the body of the response
//  2. informer/internal/wire/frames.go: one frame of it
//  3. informer/internal/wire/decode.go: the object in the frame
//  4. informer/internal/wire/decode_protobuf.go or decode_json.go, which hand over to informer/internal/lean
//  5. informer/reflector/watch.go: the event becomes a delta
//  6. informer/deltafifo/deltafifo.go: the delta waits in the log
//  7. informer/sharedinformer.go: the consumer takes the batch
//  8. informer/indexer/apply.go: the batch becomes changes of the cache
//  9. informer/indexer/index.go: the object is put into its buckets
//  10. informer/internal/fanout/fanout.go: the changes join the log of the handlers
//  11. informer/internal/fanout/listener.go: the handler is called
//
// From there on: package reconcile, whose handler adds the key to the workqueue, and whose worker calls the reconciler.
//
// # What is promised
//
//   - Per object, a handler sees states in the order the server had them. States may be left out (a cut watch hides
//     what happened meanwhile), never reordered, never repeated.
//   - The cache holds a state before any handler hears of it.
//   - A handler is called by one goroutine at a time. Handlers never wait for one another, nor does the cache for them.
//   - An object deleted and created again under its name is a delete and an add, also when a relist shows only the
//     result: identity is the UID.
//   - The watermark ([Informer].ResourceVersion) is the resource version up to which the cache is complete. It never
//     moves backwards, except when the server's own history went back, or another server took its place; that is a
//     rebuild of all caches of a factory, and it is logged and counted.
//   - Nothing is dropped unnoticed. An object that cannot be decoded stays in the cache in its last readable state,
//     and shows in Health, Stats and the log for as long as that is so; all others go on. One that cannot be
//     transformed, or an answer that makes no sense at all, stops the watermark and shows in Health until a list
//     succeeds.
//
// # What is not promised
//
//   - An order between different objects.
//   - That every state is seen: a handler too slow for the rate of changes gets the newest state of each object, not
//     all states in between. See [HandlerOptions].
//   - That an object read from the cache may be changed: it is shared with everybody. Copy it first. With the
//     environment variable KUBE_CACHE_MUTATION_DETECTOR=true, as with client-go, informers log who did not.
//
// # Concurrency
//
// An idle informer runs two goroutines: the reflector's, blocked on the response body, and the consumer's of the
// DeltaFIFO. A handler has a goroutine only while it has something to deliver. Constructors start nothing; Run
// blocks until all that it started has ended.
package informer
