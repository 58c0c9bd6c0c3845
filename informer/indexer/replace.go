package indexer

import (
	"github.com/flyball-dev/flyball/informer/deltafifo"
	"github.com/flyball-dev/flyball/informer/internal/identity"
	"github.com/flyball-dev/flyball/informer/objects"
	"github.com/flyball-dev/flyball/internal/versions"
)

// replace makes a scope hold exactly the objects that d lists. It marks the entries that stay, deletes the others, and
// then adds and updates. Deletes come first for handlers that manage unique resources: they can free a name before
// another object takes it.
func (tx *transaction[T]) replace(d *deltafifo.Delta[T]) {
	listed := tx.prepared[tx.next : tx.next+len(d.Objects)]
	tx.next += len(d.Objects)
	s := &tx.scopes[d.Scope]
	if d.Accept == deltafifo.AcceptLater && versions.Earlier(d.ResourceVersion, s.watermark) {
		tx.Outdated += len(d.Objects) // A list from the past must not take the cache back.
		return
	}
	tx.markListed(d, listed)
	tx.sweep(d.Scope)
	tx.putListed(d, listed, !s.listed)
	s.listed, s.history = true, d.History
}

// markListed gives a new mark to the entries that stay: the listed objects, including those that cannot be decoded.
func (tx *transaction[T]) markListed(d *deltafifo.Delta[T], listed []preparedObject[T]) {
	tx.marks++
	for i, p := range listed {
		if e := tx.find(p); e != nil && e.survives(d.Objects[i], d.Accept) {
			e.mark = tx.marks
		}
	}
	for _, u := range d.Unreadable {
		if e := tx.entries[u.Key]; e != nil && e.survivesUnreadable(u, d.Accept) {
			e.mark = tx.marks
		}
	}
}

// survives reports whether e stays when obj is listed under its key. Another object with a later version has taken its
// place; one with an earlier version comes from an outdated list.
func (e *entry[T]) survives(obj T, accept deltafifo.Acceptance) bool {
	had, got := identity.Of(e.obj), identity.Of(obj)
	return accept == deltafifo.AcceptAll || had.SameObject(got) || versions.Earlier(got.Version, had.Version)
}

// survivesUnreadable reports whether e is an earlier state of the listed object u, which cannot be decoded. After a
// restore from backup a state that is later than u's never existed.
func (e *entry[T]) survivesUnreadable(u *objects.DecodeError, accept deltafifo.Acceptance) bool {
	had := identity.Of(e.obj)
	existed := accept != deltafifo.AcceptEarlier || versions.Earlier(had.Version, u.Version)
	return had.SameObject(identity.Identity{UID: u.UID}) && existed
}

// sweep deletes the entries of a scope that markListed did not mark.
func (tx *transaction[T]) sweep(scope int) {
	for i := 0; i < len(tx.all.entries); {
		e := tx.all.entries[i]
		if int(e.scope) != scope || e.mark == tx.marks {
			i++
			continue
		}
		tx.drop(e, e.obj, true) // Moves another entry to i.
	}
}

// putListed adds the listed objects that are new, and updates those that have changed.
func (tx *transaction[T]) putListed(d *deltafifo.Delta[T], listed []preparedObject[T], initial bool) {
	if len(tx.entries) == 0 {
		tx.entries = make(map[string]*entry[T], len(d.Objects))
		tx.all.grow(len(d.Objects))
	}
	for i, obj := range d.Objects {
		e := tx.find(listed[i])
		switch {
		case e == nil:
			tx.add(obj, d.Scope, listed[i], initial)
		case !e.holds(obj, d.Accept): // An unchanged object in a list is not counted as a duplicate event.
			tx.update(e, obj, listed[i], d.Accept)
		}
	}
}

// upsertUnreadable keeps the last readable state of an object whose new state cannot be decoded. If the new state
// belongs to another object, the old one is gone.
func (tx *transaction[T]) upsertUnreadable(u *objects.DecodeError) {
	e := tx.entries[u.Key]
	if e == nil {
		return
	}
	had := identity.Of(e.obj)
	if !had.SameObject(identity.Identity{UID: u.UID}) && !versions.Earlier(u.Version, had.Version) {
		tx.drop(e, e.obj, true)
	}
}

// deleteUnreadable deletes an object whose last state cannot be decoded.
func (tx *transaction[T]) deleteUnreadable(u *objects.DecodeError) {
	e := tx.entries[u.Key]
	switch {
	case e == nil:
		tx.Duplicates++
	case versions.Earlier(u.Version, identity.Of(e.obj).Version):
		tx.Outdated++
	default:
		tx.drop(e, e.obj, true)
	}
}
