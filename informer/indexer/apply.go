package indexer

import (
	"fmt"
	"reflect"
	"slices"

	"github.com/flyball-dev/flyball/informer/deltafifo"
	"github.com/flyball-dev/flyball/informer/internal/identity"
	"github.com/flyball-dev/flyball/internal/versions"
)

// transaction is one Apply.
type transaction[T any] struct {
	*Indexer[T]
	Applied[T]
	// prepared has the results of prepare for each incoming object, in the order of the batch.
	prepared []preparedObject[T]
	// pool is the array behind the terms of prepared.
	pool []term[T]
	// next is the index in prepared of the next object to commit.
	next int
}

// preparedObject is what can be computed for an object before readers are locked out.
type preparedObject[T any] struct {
	key string
	// entry had this key when the batch began; nil if there was none.
	entry *entry[T]
	terms []term[T]
	// err is set if an index function failed.
	err error
}

// Apply makes a batch visible in one step: readers see all of it or nothing. It returns what really changed.
//
// What a delta changes depends on what the cache holds. An Upsert adds an object if its key is unknown, and does
// nothing if the cache has that state or a later one. An Upsert with another UID is a delete and an add: the first
// object must be gone, or the second could not exist. A Delete of an unknown key does nothing. A Replace deletes the
// objects that it does not contain, and does nothing for those that have not changed. If an object could not be
// decoded, the cache keeps its last readable state until the object is gone.
//
// Concurrency: one Apply runs at a time; others wait. Index functions run before readers are locked out.
//
// Errors: if an object has no key. Nothing was applied then.
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

// scratch is memory that the next transaction can reuse. Guarded by the indexer's write.
type scratch[T any] struct {
	prepared []preparedObject[T]
	pool     []term[T]
}

// maxScratch is the number of objects up to which scratch is kept: complete lists are rare.
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

// prepare makes all calls into user code: key and index functions.
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
	tx.Changes = make([]Change[T], 0, changes)        // Handlers keep it, so it cannot be reused.
	add := func(obj T, exists bool) error {
		key, e, err := tx.lookup(obj)
		if err != nil {
			return fmt.Errorf("key of %s: %w", identity.Describe(obj), err)
		}
		start := len(tx.pool) // Earlier terms stay valid even if pool gets a new array.
		if exists {
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

// take returns the results of prepare for the next object.
func (tx *transaction[T]) take() preparedObject[T] {
	tx.next++
	return tx.prepared[tx.next-1]
}

// commit applies the prepared batch under the lock.
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

// advance moves the watermark to the version of an applied delta. Only a Replace after a history went back may move it
// backwards.
func (tx *transaction[T]) advance(d *deltafifo.Delta[T]) {
	s := &tx.scopes[d.Scope]
	back := versions.Earlier(d.ResourceVersion, s.watermark)
	mayGoBack := d.Type == deltafifo.Replace && d.Accept != deltafifo.AcceptLater
	if d.ResourceVersion == "" || back && !mayGoBack {
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
	tx.update(e, d.Object, p, d.Accept)
}

// update replaces the state of an entry by obj, unless e already has that state or a later one.
func (tx *transaction[T]) update(e *entry[T], obj T, p preparedObject[T], accept deltafifo.Acceptance) {
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
			scope := int(e.scope)
			tx.drop(e, e.obj, true)
			tx.add(obj, scope, p, false)
			return
		}
	}
	tx.preserve(e.key, e)
	tx.Changes = append(tx.Changes, Change[T]{Type: ChangeUpdate, Key: e.key, Old: e.obj, New: obj})
	e.set(obj, p.terms)
	tx.recordIndexErr(p)
}

// holds reports whether e already has this state. After a restore from backup two different states can carry the same
// version, so AcceptEarlier also compares the contents.
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
		tx.Outdated++ // An earlier object of that name was deleted, or the deletion was already undone.
	case !had.SameObject(got):
		tx.drop(e, e.obj, true)
	default:
		tx.drop(e, d.Object, false)
	}
}

// add creates an entry in the bucket of all objects and in those of its terms.
func (tx *transaction[T]) add(obj T, scope int, p preparedObject[T], initial bool) {
	tx.preserve(p.key, nil)
	places := make([]place[T], 0, 1+len(p.terms))
	e := &entry[T]{key: p.key, obj: obj, scope: int32(scope), mark: tx.marks, places: places}
	tx.entries[p.key] = e
	tx.all.add(e)
	for _, t := range p.terms {
		t.index.bucket(t.value).add(e)
	}
	tx.recordIndexErr(p)
	tx.Changes = append(tx.Changes, Change[T]{Type: ChangeAdd, Initial: initial, Key: p.key, New: obj})
}

// drop deletes an entry. last is its last known state.
func (tx *transaction[T]) drop(e *entry[T], last T, stale bool) {
	tx.preserve(e.key, e)
	delete(tx.entries, e.key)
	delete(tx.unindexed, e.key)
	for i := range e.places {
		e.remove(i)
	}
	e.places = nil
	tx.Changes = append(tx.Changes, Change[T]{Type: ChangeDelete, Stale: stale, Key: e.key, Old: e.obj, New: last})
}

// recordIndexErr records that the index functions failed for an object, or do not fail any more.
func (tx *transaction[T]) recordIndexErr(p preparedObject[T]) {
	if p.err != nil {
		tx.unindexed[p.key] = p.err
	} else if len(tx.unindexed) > 0 {
		delete(tx.unindexed, p.key)
	}
}

// Everything returns the content of the cache as changes of one type, ChangeAdd or ChangeResync.
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
