package ledger

import (
	"cmp"
	"slices"
)

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

// entry is the newest own write of an object.
type entry struct {
	object  Object
	deleted bool
}

// Ledger lays own writes over a cache.
type Ledger struct {
	Cache *Cache
	// own has the newest write of each object. Invariant after forget: each is newer than the cache.
	own map[string]entry
}

// New returns a Ledger without writes.
func New(c *Cache) *Ledger { return &Ledger{Cache: c, own: map[string]entry{}} }

// Wrote notes the answer of a create or an update.
func (l *Ledger) Wrote(o Object) { l.note(entry{object: o}) }

// Deleted notes the answer of a delete.
func (l *Ledger) Deleted(name string, version int) {
	l.note(entry{object: Object{Name: name, Version: version}, deleted: true})
}

func (l *Ledger) note(e entry) {
	if e.object.Version > l.own[e.object.Name].object.Version {
		l.own[e.object.Name] = e
	}
}

// forget drops what the cache has reached.
func (l *Ledger) forget() {
	for name, e := range l.own {
		if e.object.Version <= l.Cache.Version {
			delete(l.own, name)
		}
	}
}

// Get returns the object of that name. It reports false if there is none.
func (l *Ledger) Get(name string) (Object, bool) {
	l.forget()
	if e, ok := l.own[name]; ok {
		return e.object, !e.deleted
	}
	o, ok := l.Cache.Objects[name]
	return o, ok
}

// List returns the objects with the label, sorted by name.
func (l *Ledger) List(label string) []Object {
	l.forget()
	var list []Object
	for name, o := range l.Cache.Objects {
		if _, ok := l.own[name]; !ok && o.Label == label {
			list = append(list, o)
		}
	}
	for _, e := range l.own {
		if !e.deleted && e.object.Label == label {
			list = append(list, e.object)
		}
	}
	slices.SortFunc(list, func(a, b Object) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// Len returns how many writes are noted that the cache does not have.
func (l *Ledger) Len() int {
	l.forget()
	return len(l.own)
}
