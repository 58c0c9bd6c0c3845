// Package writes has the record of what this process wrote to a server and its caches may not show yet. It lies between
// the cache that a watch fills and the client that reads it:
//
//	              API server
//	  list, watch │       ▲ every write of the process: of the client, a clientset, a dynamic client
//	              ▼       │
//	       ┌─ informer    transport ───before: a Write in doubt ──▶ Record, one Resource for each resource
//	batches│      │                 ───after: an Entry ──────────▶    │         ▲
//	       │      │                                                   ▼         │
//	       │      └──────────objects──────────────────────────────▶ client: a read shows the later of both
//	       └──────────has a cache passed an Entry, and never shown it? ─────────┘
//
// A write in doubt is a request whose effect is unknown: it is under way, its answer was lost, or the answer does not
// tell what became of the object. An entry is the answer of the server to the last write of an object. A minimum
// version is a version that a cache has to reach before it can be read, where there is no entry to show instead.
//
// The arrows go one way. Package writes uses what package informer offers in [informer.Cache]: the objects of a cache,
// its batches, and a new list. Package client asks the record at each read. Package reconcile only puts an owner and a
// [Waker] into the context of its requests.
//
// # The way of a write
//
//  1. transport.go: every request of the process passes here
//  2. write.go: the write in doubt, until its effect is known
//  3. entry.go: the effect, as the answer tells it
//  4. resource.go: all writes of one resource, until the caches show them
//  5. stale.go: what a read waits for where no entry can be shown
//
// Around them: record.go, the record of one server; context.go, what the context of a request carries; readers.go, the
// readers that run again if a cache never showed what they read; contradiction.go, a cache that holds what the server
// does not have; ask.go, the question to the server what became of a write; awaited.go, waiting until the caches show
// all writes.
//
// Two packages can be read last: internal/caches compares the caches with what was written, and internal/wire, of the
// whole module, reads requests and answers.
//
// # Locks
//
// The lock of a Resource comes before those of the indexers. It is never held during a request, nor while
// internal/caches or contradiction.go take their own locks. With it held, the record asks [informer.Factory.Caches],
// which takes no lock.
package writes
