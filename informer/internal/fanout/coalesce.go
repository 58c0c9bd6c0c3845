package fanout

import (
	"reflect"
	"slices"

	"github.com/flyball-dev/flyball/informer/indexer"
	"github.com/flyball-dev/flyball/informer/internal/identity"
)

// coalesced is a coalescing buffer: the changes that a lagging listener has not received, merged by object. For each
// object it keeps the state that the listener received last, and the newest state.
//
// Memory: two states per object that changed, whatever the number of changes. If an object was deleted and created
// again, the buffer also keeps its last state before the deletion.
type coalesced[T any] struct {
	objects map[string]*coalescedObject[T]
	// order has the objects in the order of their first change. An object that needs no call any more is marked dead.
	// dead counts these; forget removes them from order when they are more than half of it.
	order []*coalescedObject[T]
	dead  int
	// synced is as in [Batch].
	synced bool
}

// coalescedObject merges all changes under one key since the listener was last called for it.
type coalescedObject[T any] struct {
	key string
	// known is true if the listener knows an object under this key. old is the state of it that the listener received
	// last.
	known bool
	old   T
	// deleted is true if the known object was deleted. last is its last known state; stale is as in [indexer.Change].
	deleted bool
	last    T
	stale   bool
	// due is true if the listener has to be called with the state now. If known is true and deleted is false, now is a
	// later state of the known object. Otherwise the listener does not know the object yet.
	due     bool
	now     T
	initial bool
	// resync is true if now repeats old because of a resync.
	resync bool
	dead   bool
}

func newCoalesced[T any]() *coalesced[T] {
	return &coalesced[T]{objects: map[string]*coalescedObject[T]{}}
}

// merge adds a batch. saved is the number of calls that the merge has made unnecessary.
func (m *coalesced[T]) merge(b *Batch[T]) (saved int64) {
	m.synced = m.synced || b.Synced
	for i := range b.Changes {
		c := &b.Changes[i]
		o := m.objects[c.Key]
		if o == nil {
			o = &coalescedObject[T]{key: c.Key}
			if c.Type != indexer.ChangeAdd {
				o.known, o.old = true, c.Old
			}
			m.objects[c.Key] = o
			m.order = append(m.order, o)
		}
		before := o.calls()
		o.merge(c)
		saved += before + 1 - o.calls()
		if o.calls() == 0 {
			m.forget(o)
		}
	}
	return saved
}

// forget drops an object for which no call is due: the listener never saw it, or already has its newest state.
func (m *coalesced[T]) forget(o *coalescedObject[T]) {
	delete(m.objects, o.key)
	o.dead = true
	if m.dead++; m.dead > len(m.order)/2 {
		m.order = slices.DeleteFunc(m.order, func(o *coalescedObject[T]) bool { return o.dead })
		m.dead = 0
	}
}

func (o *coalescedObject[T]) merge(c *indexer.Change[T]) {
	switch c.Type {
	case indexer.ChangeAdd:
		o.due, o.now, o.initial = true, c.New, c.Initial
	case indexer.ChangeUpdate:
		o.due, o.now, o.resync = true, c.New, false
		same := o.known && !o.deleted && identity.Of(o.old).SameState(identity.Of(o.now))
		if same && reflect.DeepEqual(o.old, o.now) {
			o.due = false // Back to the old state, as after a restore from backup.
		}
	case indexer.ChangeResync:
		if !o.due {
			o.due, o.now, o.resync = true, c.New, true
		}
	case indexer.ChangeDelete:
		var none T
		o.due, o.now, o.resync = false, none, false
		if o.known && !o.deleted {
			o.deleted, o.last, o.stale = true, c.New, c.Stale
		}
	}
}

// calls returns the number of calls that are due for o.
func (o *coalescedObject[T]) calls() (n int64) {
	if o.deleted {
		n++
	}
	if o.due {
		n++
	}
	return n
}

// batch returns the coalesced changes as a batch for the listener.
func (m *coalesced[T]) batch() *Batch[T] {
	b := &Batch[T]{Synced: m.synced, Changes: make([]indexer.Change[T], 0, len(m.objects))}
	for _, o := range m.order {
		if o.dead {
			continue
		}
		if o.deleted {
			b.Changes = append(b.Changes, indexer.Change[T]{
				Type: indexer.ChangeDelete, Key: o.key, Old: o.old, New: o.last, Stale: o.stale,
			})
		}
		if !o.due {
			continue
		}
		c := indexer.Change[T]{Type: indexer.ChangeUpdate, Key: o.key, Old: o.old, New: o.now}
		switch {
		case !o.known || o.deleted:
			c = indexer.Change[T]{Type: indexer.ChangeAdd, Key: o.key, New: o.now, Initial: o.initial}
		case o.resync:
			c.Type = indexer.ChangeResync
		}
		b.Changes = append(b.Changes, c)
	}
	return b
}
