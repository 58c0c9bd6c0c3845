// Package client reads and writes objects of a cluster, and sees what it wrote.
//
//	                      ┌─▶ cached reads ──▶ informer.Factory ─┐
//	Get, List ────────────┤         ▲ overlay                    ├─▶ caller's copy
//	                      └─▶ live reads                         ┘
//	                                │
//	               record: own writes that some cache has not seen yet
//	                                ▲
//	Create, Update, Patch, ────▶ transport ──▶ API server
//	Apply, Delete …
//
// [New] makes a [Cluster], which is a [Client]. The verbs and their options have the names they have in
// controller-runtime. Package controllerutil has the helper functions, as CreateOrUpdate.
//
// # Reading order
//
// First a read: interface.go, what a client can do; cluster.go, what it is made of; read.go, Get and List, from the
// cache or from the server; overlay.go, the answers of own writes in place of what the cache has, and what a read waits
// for where there is none.
//
// Then a write: writer.go, which sends it through the transport that records it; patch.go, the patches; subresource.go,
// writes to a part of an object.
//
// Then what users say and are told: options.go, the options of each call; ownwrites.go, the gate for who reads by
// listers, and the error of a read that cannot see an own write yet; stats.go, how often that was.
//
// The packages beside are for later. Package writes is the record of own writes. Below this folder are
// internal/cached, an informer for each kind that is read; internal/live, requests and answers; internal/kinds, kinds
// and encodings; internal/patches, the bodies of patches.
//
// # What is promised
//
// A read that begins after a write of the same [Cluster] was answered sees that write, or a later state; also a read
// from the cache, however far its watch is behind. In particular:
//
//   - What was created, updated, patched or applied is found by Get, and by a List whose namespace, labels and fields
//     select the new state; it is missing from a List that selected only the old one.
//   - What was deleted is gone: from Get and List, from all representations. An object of the same name that somebody
//     creates later is seen as soon as the cache has it.
//   - Typed objects, unstructured ones and bare metadata tell the same.
//   - What the cache itself would not hold (another namespace, labels it does not select) does not appear.
//   - Nothing is promised about writes of other processes. What they did comes when the watch brings it.
//
// Reads do not wait for that: the answer of the write is laid over the cache until the cache's watermark has reached
// its resource version. They wait, up to [Options].StaleAfter, only where the answer does not say what the object is
// like now:
//
//   - A subresource answered with another kind (a Scale, or the Status of an eviction), or many objects were deleted
//     at once.
//   - The object was written in another version of its API than it is read in.
//   - In a reconcile: the answer of a write was lost, or it is a server error that does not say whether the write took
//     effect. Then the server is asked once about that object, and the cache must show its answer.
//
// # Who gets ErrStale
//
// A read with the context of a reconcile (see [WithOwner]) fails with [ErrStale] when that takes longer. Package
// reconcile turns it into a quiet requeue. Other reads never return it: those of map functions, validators, runnables
// and programs that run once. They see every own write that was answered. Where the cache does not show it in time, the
// server is asked instead, and if that fails as well, the read returns what the cache has. A write whose answer was
// lost is like a write of another process to them: they see it when the watch brings it.
//
// Some lost writes are not settled by asking once, because they do harm if they are applied late, after the reconcile
// has looked and written again: a create with a generated name, an update, a patch or a deletion without a precondition
// (unless the server shows that the deletion took effect), a deletion of many objects. Until a list that began after
// the server's request timeout is in the cache, reconciles cannot read what such a write could change: the object of
// that name, and lists that the object would be in by namespace and selectors. A refused connection, and an answer of
// the server's admission chain with whatever code, leave nothing open.
//
// With [LiveIfStale] the server answers where a reconcile would get ErrStale: that costs a request, and does not help
// against a write that is still under way.
//
// A write that was answered with success never returns an error because of the record.
//
// # Readers by listers
//
// Reconcilers that read by listers have [Cluster.Ready] and [Cluster.Seen] as a gate, with [TrackInformer] for their
// informers. The writes of clientsets count, too, if they are made of the same config, and that comes from a manager
// or from [ObserveWrites].
//
// # Resource versions
//
// They are compared as numbers, within one resource. A server whose versions are not numbers gets a weaker promise:
// an own write is laid over the cache until a read finds it to hold exactly that version, or for a minute. When the
// server's history goes back (a backup was restored), the record forgets what was written before: it is gone.
//
// # Cost
//
// No request is made that would not be made without, except after a lost answer, DeleteAllOf, or a subresource
// that answers with a Status: then one list of one object, when the next read has to know. docs/read-your-writes.md has
// measurements, and the same scenarios for others.
package client
