package fanout

import (
	"github.com/flyball-dev/flyball/informer/indexer"
	"github.com/flyball-dev/flyball/informer/internal/objects"
)

import "reflect"

// coalesced is a coalescing buffer: what a listener that lags has not been told. It has, per object, the state that
// the listener was told last and the newest.
//
// Memory: two states per object that changed, whatever the number of changes.
type coalesced[T any] struct {
	objects map[string]*coalescedObject[T]
	// order has the objects by their first change. Those that came to nothing stay, dead, until there are too many.
	order []*coalescedObject[T]
	dead  int
	// synced is as in [Batch].
	synced bool
}

// coalescedObject is all that happened under one key since the listener was told something about it.
type coalescedObject[T any] struct {
	key string
	// told says that the listener knows an object under the key: old.
	told bool
	old  T
	// ended says that the object old is gone; last is its last known state, stale as in [indexer.Change].
	ended bool
	last  T
	stale bool
	// lives says that there is an object now: now. When told and not ended it is a later state of old, otherwise
	// another.
	lives   bool
	now     T
	initial bool
	// resync says that now is old, to be repeated.
	resync bool
	dead   bool
}

func newCoalesced[T any]() *coalesced[T] {
	return &coalesced[T]{objects: map[string]*coalescedObject[T]{}}
}

// fold adds a batch. It returns how many notifications fewer there are than there would be had nothing been merged.
func (m *coalesced[T]) fold(b *Batch[T]) (away int64) {
	m.synced = m.synced || b.Synced
	for i := range b.Changes {
		c := &b.Changes[i]
		o := m.objects[c.Key]
		if o == nil {
			o = &coalescedObject[T]{key: c.Key}
			if c.Type != indexer.ChangeAdd {
				o.told, o.old = true, c.Old
			}
			m.objects[c.Key] = o
			m.order = append(m.order, o)
		}
		before := o.calls()
		o.fold(c)
		away += before + 1 - o.calls()
		if o.calls() == 0 {
			m.forget(o)
		}
	}
	return away
}

// forget drops an object that came and went unseen.
func (m *coalesced[T]) forget(o *coalescedObject[T]) {
	delete(m.objects, o.key)
	o.dead = true
	m.dead++
	if m.dead <= len(m.order)/2 {
		return
	}
	live := make([]*coalescedObject[T], 0, len(m.objects))
	for _, o := range m.order {
		if !o.dead {
			live = append(live, o)
		}
	}
	m.order, m.dead = live, 0
}

func (o *coalescedObject[T]) fold(c *indexer.Change[T]) {
	switch c.Type {
	case indexer.ChangeAdd:
		o.lives, o.now, o.initial = true, c.New, c.Initial
	case indexer.ChangeUpdate:
		o.lives, o.now, o.resync = true, c.New, false
		same := o.told && !o.ended && objects.Identify(o.old).SameState(objects.Identify(o.now))
		if same && reflect.DeepEqual(o.old, o.now) {
			o.lives = false // There and back, as when the server's history went back.
		}
	case indexer.ChangeResync:
		if !o.lives {
			o.lives, o.now, o.resync = true, c.New, true
		}
	case indexer.ChangeDelete:
		var none T
		o.lives, o.now, o.resync = false, none, false
		if o.told && !o.ended {
			o.ended, o.last, o.stale = true, c.New, c.Stale
		}
	}
}

// calls is the number of notifications o comes to.
func (o *coalescedObject[T]) calls() (n int64) {
	if o.ended {
		n++
	}
	if o.lives {
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
		if o.ended {
			b.Changes = append(b.Changes, indexer.Change[T]{
				Type: indexer.ChangeDelete, Key: o.key, Old: o.old, New: o.last, Stale: o.stale,
			})
		}
		if !o.lives {
			continue
		}
		switch {
		case !o.told || o.ended:
			b.Changes = append(b.Changes,
				indexer.Change[T]{Type: indexer.ChangeAdd, Key: o.key, New: o.now, Initial: o.initial})
		case o.resync:
			b.Changes = append(b.Changes,
				indexer.Change[T]{Type: indexer.ChangeResync, Key: o.key, Old: o.old, New: o.now})
		default:
			b.Changes = append(b.Changes,
				indexer.Change[T]{Type: indexer.ChangeUpdate, Key: o.key, Old: o.old, New: o.now})
		}
	}
	return b
}
