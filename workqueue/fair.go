package workqueue

import (
	"iter"
	"slices"
)

// FairOptions configures a [FairOrder].
type FairOptions[K comparable] struct {
	// Group returns the name of a key's group, for example its namespace. The queue calls it with its lock held; it
	// must be a pure function of the key. Nil puts all keys in one group.
	Group func(key K) string
	// Within returns a new Order for the keys of one group. Nil means first in, first out.
	Within func() Order[K]
	// GroupLimit is the maximum number of keys of one group that are processed at once. Further keys of the group are
	// held back; other groups do not wait for them. Zero means no limit.
	GroupLimit int
	// Limit is the maximum number of keys that are processed at once. Keys that were lent (see [FairOrder.Lend]) do not
	// count. Zero means no limit.
	Limit int
}

// FairOrder takes one key of each group in turn, so that a burst in one group does not delay the single key of another.
// With g groups waiting, a group's first key is handed out after at most g-1 others.
type FairOrder[K comparable] struct {
	o FairOptions[K]
	// lanes holds, by name, the groups that have ready keys or, if there are limits, keys in processing.
	lanes map[string]*lane[K]
	// turns holds each lane that has ready keys and is below its group's limit, once, in the order of their turns.
	turns ring[*lane[K]]
	// kept holds the lanes that have ready keys and are at their group's limit, in no particular order. Invariant:
	// kept[l.kept-1] == l.
	kept []*lane[K]
	// spare holds lanes for reuse.
	spare []*lane[K]
	count int
	// running is the number of keys in processing that count towards the limit; lent holds those that do not count.
	running int
	lent    map[K]bool
}

// lane holds the ready keys of one group.
type lane[K comparable] struct {
	group string
	order Order[K]
	// running is the number of keys of the group in processing. It is not maintained if there are no limits.
	running int
	// waits reports whether the lane is in turns. kept is its place in FairOrder.kept, counted from 1, or 0 if it is
	// not there.
	waits bool
	kept  int
}

// keepLanes is the maximum number of spare lanes.
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

// Push adds a run at the end of its group. A group that had no ready keys takes its turn after the groups that wait.
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

// Open reports whether the limits allow a key to be handed out now.
func (f *FairOrder[K]) Open() bool {
	return f.turns.len() > 0 && (f.o.Limit <= 0 || f.running < f.o.Limit)
}

// Done frees the key's slot for another key.
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

// Lend releases the slot of a key in processing, so that another key can be handed out in its place: use it when a
// reconcile spends its time waiting. The key still counts towards the limit of its group. Call Lend from within
// [Queue.Rearrange].
//
// A key that is not in processing must not be lent.
func (f *FairOrder[K]) Lend(key K) {
	if f.limited() && !f.lent[key] {
		f.lent[key] = true
		f.running--
	}
}

// Lent returns the number of keys that are lent. Call it from within [Queue.Rearrange].
func (f *FairOrder[K]) Lent() int { return len(f.lent) }

// Touch passes a change of priority on to the group's Order. It does not change the order of the groups.
func (f *FairOrder[K]) Touch(run *Ready[K]) { f.lanes[f.o.Group(run.Key)].order.Touch(run) }

// Len returns the number of runs, including those held back.
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

// place moves a lane to where it belongs: to turns, to kept, or, if it has no keys left, to spare.
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

// fifoOrder is an Order that is first in, first out.
type fifoOrder[K comparable] struct{ runs ring[*Ready[K]] }

func (f *fifoOrder[K]) Push(run *Ready[K])       { f.runs.push(run) }
func (f *fifoOrder[K]) Pop() *Ready[K]           { return f.runs.pop() }
func (f *fifoOrder[K]) Touch(*Ready[K])          {}
func (f *fifoOrder[K]) Len() int                 { return f.runs.len() }
func (f *fifoOrder[K]) All() iter.Seq[*Ready[K]] { return f.runs.all() }
