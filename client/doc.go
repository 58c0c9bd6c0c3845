// Package client reads and writes objects of a cluster. Its reads show its own writes.
//
//	                      ┌─▶ cached reads ──▶ informer.Factory ─┐
//	Get, List ────────────┤         ▲ overlay                    ├─▶ caller's copy
//	                      └─▶ live reads                         ┘
//	                                │
//	               writes.Record: own writes that some cache does not show yet
//	                                ▲
//	Create, Update, Patch, ────▶ transport ──▶ API server
//	Apply, Delete …
//
// [New] returns a [Cluster], which implements [Client]. The verbs and their options have the names that they have in
// controller-runtime. Package controllerutil has helper functions such as CreateOrUpdate.
//
// # Reading order
//
// Begin with interface.go, what a client can do, and cluster.go, what a Cluster consists of.
//
// A write: writer.go, the verbs; subresource.go, the same verbs for a subresource; patch.go, the patches.
//
// A read: read.go, Get and List; overlay.go, own writes in the place of what the cache has.
//
// What callers set and see: options.go, the options of each call; ownwrites.go, ErrStale, and the gate for reconcilers
// that read by listers; stats.go, counters.
//
// Read the packages below later. internal/live sends requests and decodes answers, internal/kinds has kinds and their
// encodings, internal/cached the caches, and internal/patches the bodies of patches. Package writes, beside this
// folder, is the record of own writes.
//
// # The way of a write
//
// An Update, and a Get that shows it before the watch does, pass these files in this order:
//
//  1. client/writer.go: Update checks the object,
//  2. client/internal/kinds/codec.go: and encodes it.
//  3. client/internal/live/send.go: The request goes to the path of the object.
//  4. writes/transport.go: The write is in doubt until the server answers.
//  5. writes/resource.go: The record keeps the answer until all caches have reached it.
//  6. client/read.go: Get reads from the cache,
//  7. client/overlay.go: and shows the recorded answer in the place of the older object there,
//  8. client/internal/cached/cache.go: in the form in which the cache would hold it.
//
// TestWayOfAWrite follows the call stacks and compares the files on them with this list.
//
// # What is promised
//
// A read that begins after a write of the same [Cluster] was answered shows that write, or a later state. This holds
// for reads from the cache as well, however far the watch is behind:
//
//   - Get finds an object that was created, updated, patched or applied. So does a List whose namespace, labels and
//     fields select its new state. A List that selects only its old state does not have it.
//   - Get and List do not find a deleted object, in any representation. They find an object that others create later
//     under its name as soon as the cache has it.
//   - Typed objects, unstructured objects and metadata agree.
//   - An object that the cache does not select, because of its namespace or its labels, does not appear.
//   - Nothing is promised about the writes of other processes. Reads show them when the watch brings them.
//
// Such a read does not wait: it shows the answer to the write in the place of what the cache has, until the cache has
// reached that version. It waits, up to [Options].StaleAfter, only if the answer does not show the state of the object:
//
//   - A subresource answered with another kind, such as a Scale, or the Status of an eviction.
//   - Many objects were deleted at once.
//   - The server reported success, but the body was not an object. The write then returned an error.
//   - The object was written in another version of its API than it is read in.
//   - In a reconcile: the answer was lost, or is a server error that leaves open whether the write took effect. Then
//     the client asks the server once about the object, and the cache must reach its answer.
//
// # Who gets ErrStale
//
// If the wait takes longer than that, a read with the context of a reconcile (see [WithOwner]) returns [ErrStale],
// which package reconcile turns into a quiet requeue. Other reads never return it: those of map functions, validators,
// runnables and programs that run once. They show every own write that was answered. If the cache does not show it in
// time, the client asks the server instead, and if that fails as well, the read returns what the cache has. A write
// whose answer was lost is like a write of another process to them: they see it when the watch brings it.
//
// Asking the server once does not settle every lost write. Some writes do harm if the server applies them late, after
// the reconcile has read and written again:
//
//   - a create with a generated name,
//   - an update, a patch or a deletion without a precondition, unless the server shows that the deletion took effect,
//   - a deletion of many objects.
//
// Until the cache has a list that began after the server's request timeout, a reconcile cannot read what such a write
// could change: the object of that name, and lists whose namespace and selectors include it. A refused connection
// leaves no doubt. Nor does an answer of the server's admission chain, whatever its code.
//
// With [LiveIfStale] the server answers where a reconcile would get ErrStale. That costs a request, and it does not
// help against a write that is still under way.
//
// A write that the server answered with success never returns an error because of the record.
//
// # Readers by listers
//
// [Cluster.Ready] and [Cluster.Seen] are a gate for reconcilers that read by listers; [TrackInformer] adds their
// informers to it. It also covers the writes of clientsets that are made of the same config, if that config comes from
// a manager or from [ObserveWrites].
//
// # Resource versions
//
// Resource versions are compared as numbers, within one resource. The promise is weaker for a server whose versions are
// not numbers: reads show an own write until the cache holds exactly that version, or for a minute. When the server's
// history goes back because a backup was restored, the record forgets the writes before that: they are gone.
//
// # Cost
//
// The record sends no requests of its own, with three exceptions: an answer that is lost or unreadable, DeleteAllOf,
// and a subresource that answers with a Status. Each costs one list of one object when the next read needs to know.
// docs/read-your-writes.md has measurements, and the same scenarios for other frameworks.
package client
