// Package writes records what this process wrote to a server and its caches may not show yet. It lies between the
// informer, whose caches a watch fills, and the client, which reads them:
//
//	API server ──list, watch──▶ informer ─────objects, watermark─────▶ client: a cached read
//	    ▲                          │                                         ▲
//	    │                          │ batches                                 │ entries, writes in doubt
//	    │                          ▼                                         │
//	transport ──Write, Entry──▶ Record, with a Resource for each resource ───┘
//	    ▲
//	    └─ every write of the process: of the client, a clientset, a dynamic client
//
// A write in doubt is a request whose effect is unknown: it is under way, its answer was lost, or the answer does not
// show the effect. An entry is the answer of the server to the last write of an object. Until a cache has reached the
// version of the entry, a read of that cache returns the entry in place of the cached object. A minimum version takes
// the place of entries that the record has dropped: a cache can be read only when it has reached that version.
//
// The arrows go one way. The informer offers [informer.Cache], and does not import this package. The client asks the
// record at each read. Package reconcile only puts an owner and a [Waker] into the context of its requests.
//
// # Reading order
//
// First a write, from the request to the read that shows it: transport.go, through which every request of the process
// passes; write.go, the write in doubt; entry.go, its effect, once it is known; resource.go, the writes of one
// resource, until the caches show them; stale.go, what a read waits for where there is no entry to show. The package
// comment of client lists the files of both packages in the order in which a call enters them.
//
// Then the rest: record.go, the record of one server; context.go, what the context of a request carries; readers.go,
// the readers that run again if no cache ever shows a state; contradiction.go, objects that a cache holds although the
// server does not have them; ask.go, which asks the server for the effect of a write; awaited.go, which waits until the
// caches show all writes.
//
// Two packages can be read last: internal/caches compares the caches with what was written, and internal/wire, below
// the root of the module, reads requests and answers.
//
// # Locks
//
// The lock of a Resource is not held during a request, and no user code runs under it. With it held, the record reads
// caches, which take locks of their own, and calls [informer.Factory.Caches], which takes none. The locks of
// internal/caches and of contradiction.go are never taken with it held.
package writes
