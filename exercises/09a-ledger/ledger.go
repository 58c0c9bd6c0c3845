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
//   - List returns the objects with the label, sorted by name. A recorded write may have changed the label.
//   - Cache.Version is the progress of the cache: it has every change of every object up to this version. A write up to
//     this version is removed from the record, so that the record does not grow.
//   - Two goroutines may write the same object, so two answers may be recorded in the wrong order. The newer version
//     counts.
//
// Versions are numbers that only grow, and each change on the server has its own version.
//
// Begin with the first test: a map from name to the newest own write, and a Get that looks at it.
package ledger

// Object is one state of an object.
type Object struct {
	Name    string
	Label   string
	Version int
}

// Cache has the objects as a watch has shown them so far. You need not change it.
type Cache struct {
	Objects map[string]Object
	// Version is the version up to which the cache has every change.
	Version int
}

// Ledger overlays a cache with the controller's own writes.
type Ledger struct {
	Cache *Cache
}

// New returns a Ledger without writes.
func New(c *Cache) *Ledger { return &Ledger{Cache: c} }

// Wrote records the answer to a create or an update.
func (l *Ledger) Wrote(o Object) {
	panic("not written yet: Wrote")
}

// Deleted records the answer to a delete.
func (l *Ledger) Deleted(name string, version int) {
	panic("not written yet: Deleted")
}

// Get returns the object of that name, and reports whether there is one.
func (l *Ledger) Get(name string) (Object, bool) {
	panic("not written yet: Get")
}

// List returns the objects with the label, sorted by name.
func (l *Ledger) List(label string) []Object {
	panic("not written yet: List")
}

// Len returns the number of recorded writes that the cache does not have yet.
func (l *Ledger) Len() int {
	panic("not written yet: Len")
}
