package indexer

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/flyball-dev/flyball/informer/deltafifo"
	"github.com/flyball-dev/flyball/informer/internal/identity"
	"github.com/flyball-dev/flyball/informer/objects"
	"github.com/flyball-dev/flyball/internal/versions"
)

// transaction is one Apply.
type transaction[T any] struct {
	*Indexer[T]
	Applied[T]
	// prepared has for each incoming object, in order, what was found out before the lock was taken.
	prepared []preparedObject[T]
	// pool holds the terms of prepared.
	pool []term[T]
	// next is the position in prepared.
	next int
}

type preparedObject[T any] struct {
	key string
	// entry is what was under key when the batch began; nil for nothing.
	entry *entry[T]
	terms []term[T]
	// err is of the index functions that failed.
	err error
}

// Apply makes a batch visible in one step: whoever reads sees all of it or nothing. It returns what really changed.
//
// The type of a delta is not believed, the cache is asked: an Upsert of an unknown key adds, one of the state
// already held does nothing, one of an earlier state does nothing, and one with another UID is a delete and an add,
// as the first object must have gone for the second to come. A Delete of an unknown key does nothing. A Replace
// deletes what it does not hold, and does nothing for what it holds unchanged. Of an object that could not be
// decoded the cache keeps the last readable state until the object is gone.
//
// Concurrency: one Apply at a time; it waits for others. Index functions run before readers are locked out.
//
// Errors: when an object has no key. Nothing was applied then.
func (x *Indexer[T]) Apply(batch []deltafifo.Delta[T]) (Applied[T], error) {
	x.write.Lock()
	defer x.write.Unlock()
	tx := transaction[T]{Indexer: x, prepared: x.scratch.prepared[:0], pool: x.scratch.pool[:0]}
	defer tx.giveBack()
	if err := tx.prepare(batch); err != nil {
		return Applied[T]{}, err
	}
	tx.commit(batch)
	x.moved.Announce()
	return tx.Applied, nil
}

// scratch is the memory of a transaction that the next one can use again. Guarded by the indexer's write.
type scratch[T any] struct {
	prepared []preparedObject[T]
	pool     []term[T]
}

// maxScratch is the number of objects up to which the memory is kept: a list of everything is rare.
const maxScratch = 4096

func (tx *transaction[T]) giveBack() {
	if cap(tx.prepared) > maxScratch {
		tx.scratch = scratch[T]{}
		return
	}
	clear(tx.prepared)
	clear(tx.pool)
	tx.scratch = scratch[T]{prepared: tx.prepared, pool: tx.pool}
}

// prepare does all that calls into user's code.
func (tx *transaction[T]) prepare(batch []deltafifo.Delta[T]) error {
	n, changes := 0, 0
	for i := range batch {
		n += 1 + len(batch[i].Objects)
		changes++
		if !tx.scopes[batch[i].Scope].listed {
			changes += len(batch[i].Objects)
		}
	}
	tx.prepared = slices.Grow(tx.prepared, n)
	tx.pool = slices.Grow(tx.pool, n*len(tx.indexes)) // One value in each index is usual.
	tx.Changes = make([]Change[T], 0, changes)        // Handlers keep it: it cannot be used again.
	add := func(obj T, lives bool) error {
		key, e, err := tx.lookup(obj)
		if err != nil {
			return fmt.Errorf("key of %s: %w", identity.Describe(obj), err)
		}
		start := len(tx.pool) // The terms before stay valid, in an earlier array perhaps.
		if lives {
			tx.pool, err = terms(tx.pool, tx.indexes, obj)
		}
		found := tx.pool[start:len(tx.pool):len(tx.pool)]
		tx.prepared = append(tx.prepared, preparedObject[T]{key: key, entry: e, terms: found, err: err})
		return nil
	}
	for i := range batch {
		d := &batch[i]
		if (d.Type == deltafifo.Upsert || d.Type == deltafifo.Delete) && d.Unreadable == nil {
			if err := add(d.Object, d.Type == deltafifo.Upsert); err != nil {
				return err
			}
		}
		for _, obj := range d.Objects {
			if err := add(obj, true); err != nil {
				return err
			}
		}
	}
	return nil
}

// take returns what prepare found out about the next object.
func (tx *transaction[T]) take() preparedObject[T] {
	tx.next++
	return tx.prepared[tx.next-1]
}

// commit puts the batch in place, under the lock.
func (tx *transaction[T]) commit(batch []deltafifo.Delta[T]) {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	before := tx.syncedLocked()
	for i := range batch {
		d := &batch[i]
		switch d.Type {
		case deltafifo.Upsert:
			if d.Unreadable != nil {
				tx.upsertUnreadable(d.Unreadable[0])
				break
			}
			tx.upsert(d, tx.take())
		case deltafifo.Delete:
			if d.Unreadable != nil {
				tx.deleteUnreadable(d.Unreadable[0])
				break
			}
			tx.delete(d, tx.take())
		case deltafifo.Replace:
			tx.replace(d)
		case deltafifo.Resync:
			tx.Resync = true
			continue
		}
		tx.advance(d)
	}
	tx.FirstSync = !before && tx.syncedLocked()
}

// advance moves the watermark to that of an applied delta.
func (tx *transaction[T]) advance(d *deltafifo.Delta[T]) {
	s := &tx.scopes[d.Scope]
	back := versions.Earlier(d.ResourceVersion, s.watermark)
	if d.ResourceVersion == "" || (back && (d.Type != deltafifo.Replace || d.Accept == deltafifo.AcceptLater)) {
		return
	}
	s.watermark = d.ResourceVersion
}

func (tx *transaction[T]) upsert(d *deltafifo.Delta[T], p preparedObject[T]) {
	e := tx.find(p)
	if e == nil {
		tx.add(d.Object, d.Scope, p, false)
		return
	}
	tx.renew(e, d.Object, p, d.Accept)
}

// renew gives an entry the state obj, if that is to be accepted.
func (tx *transaction[T]) renew(e *entry[T], obj T, p preparedObject[T], accept deltafifo.Acceptance) {
	if accept != deltafifo.AcceptAll {
		had, got := identity.Of(e.obj), identity.Of(obj)
		switch {
		case e.holds(obj, accept):
			tx.Duplicates++
			return
		case versions.Earlier(got.Version, had.Version) && accept == deltafifo.AcceptLater:
			tx.Outdated++
			return
		case !had.SameObject(got):
			scope := e.scope
			tx.drop(e, e.obj, true)
			tx.add(obj, scope, p, false)
			return
		}
	}
	tx.preserve(e.key, e)
	tx.Changes = append(tx.Changes, Change[T]{Type: ChangeUpdate, Key: e.key, Old: e.obj, New: obj})
	e.set(obj, p.terms)
	tx.noteIndexing(p)
}

// holds reports whether obj is the state that e has. Of a history that went back, the same version may have been
// given twice.
func (e *entry[T]) holds(obj T, accept deltafifo.Acceptance) bool {
	switch accept {
	case deltafifo.AcceptAll:
		return false
	case deltafifo.AcceptEarlier:
		return identity.Of(e.obj).SameState(identity.Of(obj)) && reflect.DeepEqual(e.obj, obj)
	default:
		return identity.Of(e.obj).SameState(identity.Of(obj))
	}
}

func (tx *transaction[T]) delete(d *deltafifo.Delta[T], p preparedObject[T]) {
	e := tx.find(p)
	if e == nil {
		tx.Duplicates++
		return
	}
	had, got := identity.Of(e.obj), identity.Of(d.Object)
	switch {
	case d.Accept == deltafifo.AcceptAll:
		tx.drop(e, d.Object, false)
	case versions.Earlier(got.Version, had.Version):
		tx.Outdated++ // The deletion of an earlier object of that name, or of a state long replaced.
	case !had.SameObject(got):
		tx.drop(e, e.obj, true)
	default:
		tx.drop(e, d.Object, false)
	}
}

// replace makes the scope hold what d lists. Deletes come first, so that a handler that keeps resources of unique
// names frees before it takes.
func (tx *transaction[T]) replace(d *deltafifo.Delta[T]) {
	listed := tx.prepared[tx.next : tx.next+len(d.Objects)]
	tx.next += len(d.Objects)
	s := &tx.scopes[d.Scope]
	if versions.Earlier(d.ResourceVersion, s.watermark) && d.Accept == deltafifo.AcceptLater {
		tx.Outdated += len(d.Objects) // A list from the past must not take the cache back.
		return
	}
	tx.marks++
	for i, p := range listed {
		e := tx.find(p)
		if e == nil {
			continue
		}
		had, got := identity.Of(e.obj), identity.Of(d.Objects[i])
		if d.Accept == deltafifo.AcceptAll || had.SameObject(got) || versions.Earlier(got.Version, had.Version) {
			e.mark = tx.marks
		}
	}
	for _, u := range d.Unreadable {
		if e := tx.entries[u.Key]; e != nil && e.stands(u, d.Accept) {
			e.mark = tx.marks
		}
	}
	tx.sweep(d.Scope)
	initial := !s.listed
	if len(tx.entries) == 0 {
		tx.entries = make(map[string]*entry[T], len(d.Objects))
		tx.all.grow(len(d.Objects))
	}
	for i, obj := range d.Objects {
		e := tx.find(listed[i])
		switch {
		case e == nil:
			tx.add(obj, d.Scope, listed[i], initial)
		case !e.holds(obj, d.Accept):
			tx.renew(e, obj, listed[i], d.Accept)
		}
	}
	s.listed, s.history = true, d.History
}

// stands reports whether e is an earlier state of the object that cannot be decoded. After history went back a later
// one never was.
func (e *entry[T]) stands(u *objects.DecodeError, accept deltafifo.Acceptance) bool {
	had := identity.Of(e.obj)
	later := accept != deltafifo.AcceptEarlier || versions.Earlier(had.Version, u.Version)
	return had.SameObject(identity.Identity{UID: u.UID}) && later
}

// upsertUnreadable keeps the object in its last readable state; one that another took the place of is gone.
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

// deleteUnreadable deletes an object of which the last readable state is the last known one.
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

// sweep deletes what the Replace under way did not mark.
func (tx *transaction[T]) sweep(scope int) {
	for i := 0; i < len(tx.all.entries); {
		e := tx.all.entries[i]
		if e.scope != scope || e.mark == tx.marks {
			i++
			continue
		}
		tx.drop(e, e.obj, true) // Moves another entry to i.
	}
}

func (tx *transaction[T]) add(obj T, scope int, p preparedObject[T], initial bool) {
	tx.preserve(p.key, nil)
	e := &entry[T]{key: p.key, obj: obj, scope: scope, mark: tx.marks, places: make([]place[T], 0, 1+len(p.terms))}
	tx.entries[p.key] = e
	tx.all.add(e)
	for _, t := range p.terms {
		t.index.bucket(t.value).add(e)
	}
	tx.noteIndexing(p)
	tx.Changes = append(tx.Changes, Change[T]{Type: ChangeAdd, Initial: initial, Key: p.key, New: obj})
}

// drop deletes an entry whose last known state is last.
func (tx *transaction[T]) drop(e *entry[T], last T, stale bool) {
	tx.preserve(e.key, e)
	e.gone = true
	delete(tx.entries, e.key)
	delete(tx.unindexed, e.key)
	for i := range e.places {
		e.remove(i)
	}
	tx.Changes = append(tx.Changes, Change[T]{Type: ChangeDelete, Stale: stale, Key: e.key, Old: e.obj, New: last})
}

func (tx *transaction[T]) noteIndexing(p preparedObject[T]) {
	if p.err != nil {
		if len(tx.unindexed) == 0 {
			tx.IndexErr = p.err
		}
		tx.unindexed[p.key] = p.err
	} else if len(tx.unindexed) > 0 {
		delete(tx.unindexed, p.key)
	}
}

// Everything returns the cache as changes of one type, ChangeAdd or ChangeResync.
func (x *Indexer[T]) Everything(t ChangeType) []Change[T] {
	x.mu.RLock()
	defer x.mu.RUnlock()
	all := make([]Change[T], 0, len(x.all.entries))
	for _, e := range x.all.entries {
		c := Change[T]{Type: t, Key: e.key, New: e.obj}
		if t == ChangeAdd {
			c.Initial = true
		} else {
			c.Old = e.obj
		}
		all = append(all, c)
	}
	return all
}
