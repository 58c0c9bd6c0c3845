package ledger

import (
	"cmp"
	"slices"
)

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

// entry is the newest recorded write of an object.
type entry struct {
	object  Object
	deleted bool
}

// Ledger overlays a cache with the controller's own writes.
type Ledger struct {
	Cache *Cache
	// own has the newest recorded write of each object. Invariant after forget: each is newer than the cache.
	own map[string]entry
}

// New returns a Ledger without writes.
func New(c *Cache) *Ledger { return &Ledger{Cache: c, own: map[string]entry{}} }

// Wrote records the answer to a create or an update.
func (l *Ledger) Wrote(o Object) { l.note(entry{object: o}) }

// Deleted records the answer to a delete.
func (l *Ledger) Deleted(name string, version int) {
	l.note(entry{object: Object{Name: name, Version: version}, deleted: true})
}

func (l *Ledger) note(e entry) {
	if e.object.Version > l.own[e.object.Name].object.Version {
		l.own[e.object.Name] = e
	}
}

// forget removes the writes that the cache has.
func (l *Ledger) forget() {
	for name, e := range l.own {
		if e.object.Version <= l.Cache.Version {
			delete(l.own, name)
		}
	}
}

// Get returns the object of that name, and reports whether there is one.
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

// Len returns the number of recorded writes that the cache does not have yet.
func (l *Ledger) Len() int {
	l.forget()
	return len(l.own)
}
