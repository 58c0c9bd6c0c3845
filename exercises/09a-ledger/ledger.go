// Package ledger is task 09a: reads that see one's own writes, from a cache that is late.
//
// A controller reads from a cache that a watch fills, and writes to a server. Build the record that lies between the
// two. It keeps the answers of writes until the cache has caught up. About 60 lines are enough.
//
// The contract:
//
//   - Wrote notes the answer of a create or an update: the object as the server has stored it. Deleted notes that the
//     server has deleted an object; the version is that of the deletion.
//   - Get and List answer from the cache, with the noted writes laid over it. A write counts only if it is newer than
//     what the cache shows.
//   - List returns the objects that have the label, sorted by name. An own write may have changed the labels.
//   - Cache.Version is how far the cache is: it has everything that happened up to this version, whichever object it
//     happened to. What the cache has reached is forgotten, so the record does not grow.
//   - Answers of two writes may be noted in the wrong order, because two goroutines write. The newer version counts.
//
// Versions are numbers that only grow, and each change of the server has one of its own.
//
// Begin with the first test: a map from name to the newest own write, and a Get that looks at it.
package ledger

// Object is an object of the server.
type Object struct {
	Name    string
	Label   string
	Version int
}

// Cache is what a watch has brought so far. You need not change it.
type Cache struct {
	Objects map[string]Object
	// Version is how far the cache is.
	Version int
}

// Ledger lays own writes over a cache.
type Ledger struct {
	Cache *Cache
}

// New returns a Ledger without writes.
func New(c *Cache) *Ledger { return &Ledger{Cache: c} }

// Wrote notes the answer of a create or an update.
func (l *Ledger) Wrote(o Object) {
	panic("not written yet: Wrote")
}

// Deleted notes the answer of a delete.
func (l *Ledger) Deleted(name string, version int) {
	panic("not written yet: Deleted")
}

// Get returns the object of that name. It reports false if there is none.
func (l *Ledger) Get(name string) (Object, bool) {
	panic("not written yet: Get")
}

// List returns the objects with the label, sorted by name.
func (l *Ledger) List(label string) []Object {
	panic("not written yet: List")
}

// Len returns how many writes are noted that the cache does not have.
func (l *Ledger) Len() int {
	panic("not written yet: Len")
}
