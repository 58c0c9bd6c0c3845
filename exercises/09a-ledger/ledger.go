// Package ledger is task 09a: reads that include one's own writes, from a cache that is behind.
//
// A controller reads from a cache that a watch fills, and writes to a server. Build the record between the two, which
// keeps the results of writes until the cache has caught up. About 60 lines are enough.
//
// The contract:
//
//   - Wrote records the answer to a create or an update, which is the object as the server has stored it. Deleted
//     records that the server has deleted an object; the version is that of the deletion.
//   - Get and List read from the cache, overlaid with the recorded writes. A write counts only if it is newer than what
//     the cache has.
//   - List returns the objects with the label, sorted by key. A recorded write may have changed the label.
//   - Cache.Version is the progress of the cache: it has every change of every object up to this version. A write up to
//     this version is removed from the record, so that the record does not grow.
//   - Two goroutines may write the same object, so two answers may be recorded in the wrong order. The newer version
//     counts.
//
// Begin with the first test: a map from key to the newest own write, and a Get that looks at it.
package ledger

import "github.com/flyball-dev/flyball/exercises/kube"

// Ledger overlays a cache with the controller's own writes.
type Ledger struct {
	Cache *kube.Store
}

// New returns a Ledger without writes.
func New(c *kube.Store) *Ledger { return &Ledger{Cache: c} }

// Wrote records the answer to a create or an update.
func (l *Ledger) Wrote(o *kube.Object) {
	panic("not written yet: Wrote")
}

// Deleted records the answer to a delete.
func (l *Ledger) Deleted(key string, version int) {
	panic("not written yet: Deleted")
}

// Get returns the object of that key, and reports whether there is one.
func (l *Ledger) Get(key string) (*kube.Object, bool) {
	panic("not written yet: Get")
}

// List returns the objects whose label has that value, sorted by key.
func (l *Ledger) List(label, value string) []*kube.Object {
	panic("not written yet: List")
}

// Len returns the number of recorded writes that the cache does not have yet.
func (l *Ledger) Len() int {
	panic("not written yet: Len")
}
