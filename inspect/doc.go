// Package inspect shows a running manager from inside: the pipeline, the queues, the caches, and the way of one object
// through all of them.
//
//	inspector := inspect.New(inspect.Options{})
//	mgr, err := manager.New(config, manager.Options{DebugAddr: "127.0.0.1:6060", Inspect: inspector})
//
// The manager then serves a page at http://127.0.0.1:6060/inspect/, under the same rules as its profiles. The commands
// flyball trace and flyball top read the same address.
//
// # What is recorded
//
// Informers, controllers and the client report each step of an object to the Inspector of their context: an event of a
// watch, a change of the cache, the keys that a handler made of it, each reconcile with its causes, its writes, log
// lines and held-back reads. The last 50 steps of 2,000 objects and keys are kept in memory, at 320 bytes a step, and
// the states before and after the last 4,096 changes, for differences. [Options] sets other bounds. Without an
// Inspector nothing is recorded, and the pipeline pays for a comparison with nil.
//
// Only what happens in this process is recorded. Writes are those of the manager's client and of the clients that are
// made of the manager's config. Log lines are those of the logger in the reconcile's context. Objects of the same name
// in different clusters of package multicluster share a timeline.
//
// # What is never shown
//
// The data of Secrets, and the annotation in which kubectl keeps it.
//
// # Reading order
//
// inspect.go, the Inspector; object.go, an object's timeline; diff.go, what changed in it; why.go, why nothing happens
// to it; pipeline.go, all resources and controllers. serve.go answers requests, which guard.go lets through; events.go
// streams; compare.go puts an object of a cache beside the server's. The folder page has the page.
package inspect
