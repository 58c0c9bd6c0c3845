package informer

import (
	"fmt"
	"reflect"
	"slices"
)

// ChangeType is what a [Change] says.
type ChangeType uint8

// The types of changes.
const (
	ChangeAdd ChangeType = iota
	ChangeUpdate
	ChangeDelete
	// ChangeResync repeats an object that did not change.
	ChangeResync
)

// Change is one difference between two states of the cache.
type Change[T any] struct {
	Type ChangeType
	// Initial marks an Add by the first list.
	Initial bool
	// Stale marks a Delete that was concluded from a list, not seen.
	Stale bool
	Key   string
	// Old is the state before; unset for Add.
	Old T
	// New is the state after; for Delete the last known state, from the deletion's event if there was one.
	New T
}

// Applied is what became of a batch.
type Applied[T any] struct {
	// Changes is in the order of the batch. Nobody changes it any more.
	Changes []Change[T]
	// FirstSync says that with this batch each scope has been listed for the first time.
	FirstSync bool
	// Resync says that a DeltaResync was in the batch, after which nothing else may be.
	Resync bool
	// IndexErr is the error of an object that the index functions failed on while they had succeeded on all before; nil otherwise.
	IndexErr error
	// Duplicates counts events that told nothing new, Outdated objects that the cache had newer.
	Duplicates, Outdated int
}

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
// The type of a delta is not believed, the cache is asked: an Upsert of an unknown key adds, one of the state already held does
// nothing, one of an earlier state does nothing, and one with another UID is a delete and an add, as the first object must
// have gone for the second to come. A Delete of an unknown key does nothing. A Replace deletes what it does not
// hold, and does nothing for what it holds unchanged. Of an object that could not be decoded the cache keeps the last readable
// state until the object is gone.
//
// Concurrency: one Apply at a time; it waits for others. Index functions run before readers are locked out.
//
// Errors: when an object has no key. Nothing was applied then.
func (x *Indexer[T]) Apply(batch []Delta[T]) (Applied[T], error) {
	x.write.Lock()
	defer x.write.Unlock()
	tx := transaction[T]{Indexer: x, prepared: x.scratch.prepared[:0], pool: x.scratch.pool[:0]}
	defer tx.giveBack()
	if err := tx.prepare(batch); err != nil {
		return Applied[T]{}, err
	}
	tx.commit(batch)
	x.moved.announce()
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
func (tx *transaction[T]) prepare(batch []Delta[T]) error {
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
			return fmt.Errorf("key of %s: %w", describe(obj), err)
		}
		start := len(tx.pool) // The terms before stay valid, in an earlier array perhaps.
		if lives {
			tx.pool, err = terms(tx.pool, tx.indexes, obj)
		}
		tx.prepared = append(tx.prepared, preparedObject[T]{key: key, entry: e, terms: tx.pool[start:len(tx.pool):len(tx.pool)], err: err})
		return nil
	}
	for i := range batch {
		d := &batch[i]
		if (d.Type == DeltaUpsert || d.Type == DeltaDelete) && d.Unreadable == nil {
			if err := add(d.Object, d.Type == DeltaUpsert); err != nil {
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
func (tx *transaction[T]) commit(batch []Delta[T]) {
	tx.mu.Lock()
	defer tx.mu.Unlock()
	before := tx.syncedLocked()
	for i := range batch {
		d := &batch[i]
		switch d.Type {
		case DeltaUpsert:
			if d.Unreadable != nil {
				tx.upsertUnreadable(d.Unreadable[0])
				break
			}
			tx.upsert(d, tx.take())
		case DeltaDelete:
			if d.Unreadable != nil {
				tx.deleteUnreadable(d.Unreadable[0])
				break
			}
			tx.delete(d, tx.take())
		case DeltaReplace:
			tx.replace(d)
		case DeltaResync:
			tx.Resync = true
			continue
		}
		tx.advance(d)
	}
	tx.FirstSync = !before && tx.syncedLocked()
}

// advance moves the watermark to that of an applied delta.
func (tx *transaction[T]) advance(d *Delta[T]) {
	s := &tx.scopes[d.Scope]
	back := older(d.ResourceVersion, s.watermark)
	if d.ResourceVersion == "" || (back && (d.Type != DeltaReplace || d.Accept == AcceptLater)) {
		return
	}
	s.watermark = d.ResourceVersion
}

func (tx *transaction[T]) upsert(d *Delta[T], p preparedObject[T]) {
	e := tx.find(p)
	if e == nil {
		tx.add(d.Object, d.Scope, p, false)
		return
	}
	tx.renew(e, d.Object, p, d.Accept)
}

// renew gives an entry the state obj, if that is to be accepted.
func (tx *transaction[T]) renew(e *entry[T], obj T, p preparedObject[T], accept Acceptance) {
	if accept != AcceptAll {
		had, got := identify(e.obj), identify(obj)
		switch {
		case e.holds(obj, accept):
			tx.Duplicates++
			return
		case older(got.version, had.version) && accept == AcceptLater:
			tx.Outdated++
			return
		case !had.sameObject(got):
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

// holds says whether obj is the state that e has. Of a history that went back, the same version may have been given twice.
func (e *entry[T]) holds(obj T, accept Acceptance) bool {
	switch accept {
	case AcceptAll:
		return false
	case AcceptEarlier:
		return identify(e.obj).sameState(identify(obj)) && reflect.DeepEqual(e.obj, obj)
	default:
		return identify(e.obj).sameState(identify(obj))
	}
}

func (tx *transaction[T]) delete(d *Delta[T], p preparedObject[T]) {
	e := tx.find(p)
	if e == nil {
		tx.Duplicates++
		return
	}
	had, got := identify(e.obj), identify(d.Object)
	switch {
	case d.Accept == AcceptAll:
		tx.drop(e, d.Object, false)
	case older(got.version, had.version):
		tx.Outdated++ // The deletion of an earlier object of that name, or of a state long replaced.
	case !had.sameObject(got):
		tx.drop(e, e.obj, true)
	default:
		tx.drop(e, d.Object, false)
	}
}

// replace makes the scope hold what d lists. Deletes come first, so that a handler that keeps resources of unique names
// frees before it takes.
func (tx *transaction[T]) replace(d *Delta[T]) {
	listed := tx.prepared[tx.next : tx.next+len(d.Objects)]
	tx.next += len(d.Objects)
	s := &tx.scopes[d.Scope]
	if older(d.ResourceVersion, s.watermark) && d.Accept == AcceptLater {
		tx.Outdated += len(d.Objects) // A list from the past must not take the cache back.
		return
	}
	tx.marks++
	for i, p := range listed {
		e := tx.find(p)
		if e == nil {
			continue
		}
		if had, got := identify(e.obj), identify(d.Objects[i]); d.Accept == AcceptAll || had.sameObject(got) || older(got.version, had.version) {
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

// stands says whether e is an earlier state of the object that cannot be decoded. After history went back a later one never was.
func (e *entry[T]) stands(u *DecodeError, accept Acceptance) bool {
	had := identify(e.obj)
	return had.sameObject(identity{uid: u.UID}) && (accept != AcceptEarlier || older(had.version, u.Version))
}

// upsertUnreadable keeps the object in its last readable state; one that another took the place of is gone.
func (tx *transaction[T]) upsertUnreadable(u *DecodeError) {
	e := tx.entries[u.Key]
	if e == nil {
		return
	}
	if had := identify(e.obj); !had.sameObject(identity{uid: u.UID}) && !older(u.Version, had.version) {
		tx.drop(e, e.obj, true)
	}
}

// deleteUnreadable deletes an object of which the last readable state is the last known one.
func (tx *transaction[T]) deleteUnreadable(u *DecodeError) {
	e := tx.entries[u.Key]
	switch {
	case e == nil:
		tx.Duplicates++
	case older(u.Version, identify(e.obj).version):
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

// everything returns the cache as changes of one type, ChangeAdd or ChangeResync.
func (x *Indexer[T]) everything(t ChangeType) []Change[T] {
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
