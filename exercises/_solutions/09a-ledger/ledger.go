package ledger

import (
	"cmp"
	"slices"

	"github.com/flyball-dev/flyball/exercises/kube"
)

// entry is the newest recorded write of an object.
type entry struct {
	object  *kube.Object // nil if it was deleted
	version int
}

// Ledger overlays a cache with the controller's own writes.
type Ledger struct {
	Cache *kube.Store
	// own has the newest recorded write of each object. Invariant after forget: each is newer than the cache.
	own map[string]entry
}

// New returns a Ledger without writes.
func New(c *kube.Store) *Ledger { return &Ledger{Cache: c, own: map[string]entry{}} }

// Wrote records the answer to a create or an update.
func (l *Ledger) Wrote(o *kube.Object) { l.note(o.Key(), entry{o, o.Version}) }

// Deleted records the answer to a delete.
func (l *Ledger) Deleted(key string, version int) {
	l.note(key, entry{nil, version})
}

func (l *Ledger) note(key string, e entry) {
	if e.version > l.own[key].version {
		l.own[key] = e
	}
}

// forget removes the writes that the cache has.
func (l *Ledger) forget() {
	for key, e := range l.own {
		if e.version <= l.Cache.Version {
			delete(l.own, key)
		}
	}
}

// Get returns the object of that key, and reports whether there is one.
func (l *Ledger) Get(key string) (*kube.Object, bool) {
	l.forget()
	if e, ok := l.own[key]; ok {
		return e.object, e.object != nil
	}
	o, ok := l.Cache.Objects[key]
	return o, ok
}

// List returns the objects whose label has that value, sorted by key.
func (l *Ledger) List(label, value string) []*kube.Object {
	l.forget()
	var list []*kube.Object
	for key, o := range l.Cache.Objects {
		if _, ok := l.own[key]; !ok && o.Labels[label] == value {
			list = append(list, o)
		}
	}
	for _, e := range l.own {
		if e.object != nil && e.object.Labels[label] == value {
			list = append(list, e.object)
		}
	}
	slices.SortFunc(list, func(a, b *kube.Object) int { return cmp.Compare(a.Key(), b.Key()) })
	return list
}

// Len returns the number of recorded writes that the cache does not have yet.
func (l *Ledger) Len() int {
	l.forget()
	return len(l.own)
}
