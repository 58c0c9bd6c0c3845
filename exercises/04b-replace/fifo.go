// Package fifo is task 04b: objects in the cache that no longer exist.
//
// FIFO lies between a watch and a cache. It keeps a list of changes for each key, and hands out one key at a time. When
// the watch broke, a list of all objects comes: Replace turns it into changes.
//
// Its users find objects in the cache that the server does not have. It happens when a watch breaks while the queue is
// long, and the object stays until the next list. client-go v0.26.1 has this bug in tools/cache/delta_fifo.go, and
// kubernetes/kubernetes#115658 reports it.
//
// Run the tests, read the code, and find out for which objects nobody queues a deletion. Say what the cache will hold
// when the queue is empty, before you change anything.
package fifo

import "slices"

// Object is a state of an object of the server.
type Object struct {
	Key     string
	Version int
}

// Change is what the cache has to do.
type Change struct {
	// Deleted says that the object is gone. Object is its last known state then.
	Deleted bool
	Object  Object
}

// Cache is what has been handed out so far. You need not change it.
type Cache map[string]Object

// Apply does what changes say.
func (c Cache) Apply(changes []Change) {
	for _, change := range changes {
		if change.Deleted {
			delete(c, change.Object.Key)
		} else {
			c[change.Object.Key] = change.Object
		}
	}
}

// FIFO hands out changes key by key.
type FIFO struct {
	// order has the keys in the order in which they came, changes what happened to each. A key is in both or in none.
	order   []string
	changes map[string][]Change
	// cache is where the changes go.
	cache Cache
}

// New returns an empty FIFO in front of the cache.
func New(cache Cache) *FIFO {
	return &FIFO{changes: map[string][]Change{}, cache: cache}
}

// Set queues a new state.
func (f *FIFO) Set(o Object) { f.queue(Change{Object: o}) }

// Delete queues a deletion. One of an object that nobody knows is not queued.
func (f *FIFO) Delete(o Object) {
	_, known := f.cache[o.Key]
	if known || len(f.changes[o.Key]) > 0 {
		f.queue(Change{Deleted: true, Object: o})
	}
}

// Replace queues what a list says: these objects exist, and no others.
func (f *FIFO) Replace(list []Object) {
	listed := map[string]bool{}
	for _, o := range list {
		listed[o.Key] = true
		f.Set(o)
	}
	for key, o := range f.cache {
		if listed[key] {
			continue
		}
		if queued := f.changes[key]; len(queued) > 0 {
			o = queued[len(queued)-1].Object // It is newer.
		}
		f.queue(Change{Deleted: true, Object: o})
	}
}

// queue appends a change. A deletion after a deletion adds nothing.
func (f *FIFO) queue(c Change) {
	key := c.Object.Key
	queued := f.changes[key]
	if n := len(queued); n > 0 && queued[n-1].Deleted && c.Deleted {
		return
	}
	if len(queued) == 0 {
		f.order = append(f.order, key)
	}
	f.changes[key] = append(queued, c)
}

// Pop hands out the first key's changes to the cache, and returns them. It returns nil if the queue is empty.
func (f *FIFO) Pop() []Change {
	if len(f.order) == 0 {
		return nil
	}
	key := f.order[0]
	f.order = slices.Delete(f.order, 0, 1)
	changes := f.changes[key]
	delete(f.changes, key)
	f.cache.Apply(changes)
	return changes
}
