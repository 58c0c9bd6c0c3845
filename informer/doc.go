// Package informer keeps a local, indexed copy of the objects of an API resource, and tells handlers what changes in it.
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
//	 (rest.go)       (reflector.go)        (deltafifo.go)                   (indexer.go)         (fanout.go)   Handler
//	                                                                            ▲                             Handler
//	                                                             Get, List, ByIndex, All
//
// Read the files in that order. A [ListerWatcher] speaks to the server. The [Reflector] is a state machine that keeps
// listing and watching whatever the server does. It appends what it learns to the [DeltaFIFO], an ordered log. One
// goroutine takes everything queued in one step and applies it to the [Indexer] as one transaction. What really changed
// comes out as an immutable batch, which every [Handler] reads with a cursor of its own. [SharedInformer] is these parts
// joined; [Factory] shares one of them between all who ask for the same resource.
//
// # What is promised
//
//   - Per object, a handler sees states in the order the server had them. States may be left out (a cut watch hides
//     what happened meanwhile), never reordered, never repeated.
//   - The cache holds a state before any handler hears of it.
//   - A handler is called by one goroutine at a time. Handlers never wait for one another, nor does the cache for them.
//   - An object deleted and created again under its name is a delete and an add, also when a relist shows only the result:
//     identity is the UID.
//   - The watermark ([Informer].ResourceVersion) is the resource version up to which the cache is complete. It never moves
//     backwards, except when the server's own history went back, or another server took its place; that is a rebuild of all caches of a
//     factory, and it is logged and counted.
//   - Nothing is dropped unnoticed. An object that cannot be decoded stays in the cache in its last readable state, and shows
//     in Health, Stats and the log for as long as that is so; all others go on. One that cannot be transformed, or an answer that
//     makes no sense at all, stops the watermark and shows in Health until a list succeeds.
//
// # What is not promised
//
//   - An order between different objects.
//   - That every state is seen: a handler too slow for the rate of changes gets the newest state of each object, not
//     all states in between. See [HandlerOptions].
//   - That an object read from the cache may be changed: it is shared with everybody. Copy it first.
//
// # Concurrency
//
// An idle informer runs two goroutines: the reflector's, blocked on the response body, and the consumer's of the DeltaFIFO.
// A handler has a goroutine only while it has something to deliver. Constructors start nothing; Run blocks until all
// that it started has ended.
package informer
