package workqueue

import (
	"iter"
	"slices"
)

// FairOptions configures a [FairOrder].
type FairOptions[K comparable] struct {
	// Group names the group of a key, for example its namespace. It is called under the queue's lock and must be a pure
	// function of the key. Nil puts all keys in one group.
	Group func(key K) string
	// Within makes the order of one group's keys. Nil means first in, first out.
	Within func() Order[K]
	// GroupLimit is how many keys of one group are worked on at once, at most: the others of the group are kept back, and no
	// other group waits for them. Zero: any number.
	GroupLimit int
	// Limit is how many keys are worked on at once, at most, those lent (see [FairOrder.Lend]) not counted. Zero: any number.
	Limit int
}

// FairOrder takes one key of each group in turn, so that one group's storm does not delay another group's single key:
// with g groups waiting, a group's first key is handed out after at most g-1 others.
type FairOrder[K comparable] struct {
	o FairOptions[K]
	// lanes are the groups with keys that are ready or, if there are limits, worked on; by name.
	lanes map[string]*lane[K]
	// turns has each lane once that has ready keys and may have one more worked on, the next first.
	turns ring[*lane[K]]
	// kept has the lanes with ready keys that are at the limit of their group, in no order. Invariant: kept[l.kept-1] == l.
	kept []*lane[K]
	// spare are lanes that no group uses.
	spare []*lane[K]
	count int
	// running is how many keys are worked on that count for the limit; lent are those that do not.
	running int
	lent    map[K]bool
}

// lane holds the ready keys of one group.
type lane[K comparable] struct {
	group string
	order Order[K]
	// running is how many keys of the group are worked on. It is not counted without limits.
	running int
	// waits says that the lane is in turns; kept is its place in FairOrder.kept, counted from 1, or 0.
	waits bool
	kept  int
}

// keepLanes is how many unused lanes a FairOrder keeps.
const keepLanes = 64

// NewFairOrder returns an empty order.
func NewFairOrder[K comparable](o FairOptions[K]) *FairOrder[K] {
	if o.Group == nil {
		o.Group = func(K) string { return "" }
	}
	if o.Within == nil {
		o.Within = func() Order[K] { return new(fifoOrder[K]) }
	}
	return &FairOrder[K]{o: o, lanes: make(map[string]*lane[K]), lent: make(map[K]bool)}
}

// Push takes in a run at the end of its group. A group that had no keys has its turn after those that have.
func (f *FairOrder[K]) Push(run *Ready[K]) {
	group := f.o.Group(run.Key)
	l := f.lanes[group]
	if l == nil {
		l = f.newLane(group)
		f.lanes[group] = l
	}
	l.order.Push(run)
	f.count++
	f.place(l)
}

// Pop returns the first run of the group whose turn it is.
func (f *FairOrder[K]) Pop() *Ready[K] {
	l := f.turns.pop()
	l.waits = false
	run := l.order.Pop()
	f.count--
	if f.limited() {
		l.running++
		f.running++
	}
	f.place(l)
	return run
}

// Open says whether the limits let a key be handed out now.
func (f *FairOrder[K]) Open() bool {
	return f.turns.len() > 0 && (f.o.Limit <= 0 || f.running < f.o.Limit)
}

// Done makes room, within the limits, for another key.
func (f *FairOrder[K]) Done(key K) {
	if !f.limited() {
		return
	}
	l := f.lanes[f.o.Group(key)]
	l.running--
	if f.lent[key] {
		delete(f.lent, key)
	} else {
		f.running--
	}
	f.place(l)
}

// Lend lets another key be worked on in the place of one that is, until that is done: it takes long, because it waits for
// something, and others need not. It counts for the limit of its group as before. Call it by [Queue.Rearrange].
//
// A key that is not worked on must not be lent.
func (f *FairOrder[K]) Lend(key K) {
	if f.limited() && !f.lent[key] {
		f.lent[key] = true
		f.running--
	}
}

// Lent is how many keys are lent. Call it by [Queue.Rearrange].
func (f *FairOrder[K]) Lent() int { return len(f.lent) }

// Touch passes a change of priority on to the group. It does not change whose turn it is.
func (f *FairOrder[K]) Touch(run *Ready[K]) { f.lanes[f.o.Group(run.Key)].order.Touch(run) }

// Len returns the number of runs, those kept back included.
func (f *FairOrder[K]) Len() int { return f.count }

// All yields the runs in any order.
func (f *FairOrder[K]) All() iter.Seq[*Ready[K]] {
	return func(yield func(*Ready[K]) bool) {
		for _, lanes := range []iter.Seq[*lane[K]]{f.turns.all(), slices.Values(f.kept)} {
			for l := range lanes {
				for run := range l.order.All() {
					if !yield(run) {
						return
					}
				}
			}
		}
	}
}

func (f *FairOrder[K]) limited() bool { return f.o.GroupLimit > 0 || f.o.Limit > 0 }

// place puts a lane where it belongs now: into the row of those that wait for their turn, among those kept back, or away.
func (f *FairOrder[K]) place(l *lane[K]) {
	ready, full := l.order.Len() > 0, f.o.GroupLimit > 0 && l.running >= f.o.GroupLimit
	if keep := ready && full; keep != (l.kept > 0) {
		f.keep(l, keep)
	}
	switch {
	case ready && !full && !l.waits:
		l.waits = true
		f.turns.push(l)
	case !ready && l.running == 0:
		delete(f.lanes, l.group)
		if len(f.spare) < keepLanes {
			f.spare = append(f.spare, l)
		}
	}
}

func (f *FairOrder[K]) keep(l *lane[K], keep bool) {
	if keep {
		f.kept = append(f.kept, l)
		l.kept = len(f.kept)
		return
	}
	last := len(f.kept) - 1
	f.kept[l.kept-1] = f.kept[last]
	f.kept[l.kept-1].kept = l.kept
	f.kept[last], f.kept, l.kept = nil, f.kept[:last], 0
}

func (f *FairOrder[K]) newLane(group string) *lane[K] {
	n := len(f.spare)
	if n == 0 {
		return &lane[K]{group: group, order: f.o.Within()}
	}
	l := f.spare[n-1]
	f.spare = f.spare[:n-1]
	l.group = group
	return l
}

// fifoOrder is first in, first out, as an Order.
type fifoOrder[K comparable] struct{ runs ring[*Ready[K]] }

func (f *fifoOrder[K]) Push(run *Ready[K])       { f.runs.push(run) }
func (f *fifoOrder[K]) Pop() *Ready[K]           { return f.runs.pop() }
func (f *fifoOrder[K]) Touch(*Ready[K])          {}
func (f *fifoOrder[K]) Len() int                 { return f.runs.len() }
func (f *fifoOrder[K]) All() iter.Seq[*Ready[K]] { return f.runs.all() }
