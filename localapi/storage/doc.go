// Package storage defines the store that the embedded API server needs: a sorted map from keys to bytes with a revision
// counter, guarded writes, and a history that can be read and watched from any revision not yet compacted.
//
// It knows nothing of objects, versions of types or HTTP. [github.com/flyball-dev/flyball/localapi/storage/memory] is
// the in-memory implementation, [github.com/flyball-dev/flyball/localapi/storage/pebble] the one on disk. The tests
// that every implementation has to pass are in conformance_test.go beside the latter. The keys are those of [Key].
//
// # Revisions
//
// Every successful write takes the next revision. All keys share the counter, and it rises by exactly one, so the order
// of revisions is the order of writes. A fresh store is at [FirstRevision], never at zero, because the API gives
// resource version "0" a meaning of its own. A reopened store continues where it stopped.
//
// # Concurrency
//
// All methods may be called concurrently. A write is visible to every read, list and poll that starts after the write
// returned. No watcher, however slow, delays a write or another watcher: a watch is a position in the history, and if
// compaction overtakes it, it returns [ErrCompacted].
package storage
