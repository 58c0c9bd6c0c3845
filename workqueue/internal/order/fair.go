package order

import (
	"iter"
	"slices"

	"github.com/flyball-dev/flyball/workqueue/internal/ring"
)

// Limits bound how many keys are processed at once. Zero means no limit.
type Limits struct {
	// PerGroup bounds the keys of one group. Further keys of the group are held back; other groups do not wait for
	// them.
	PerGroup int
	// All bounds the keys of all groups together. Runs whose slot was released do not count.
	All int
}

// Fair takes one key of each group in turn, so that one group's storm does not delay another group's single key:
// with g groups waiting, a group's first key is handed out after at most g-1 others.
type Fair[K comparable] struct {
	group  func(key K) string
	within func() Order[K]
	limits Limits
	// lanes holds, by name, the groups that have ready keys or, if there are limits, keys in processing.
	lanes map[string]*lane[K]
	// turns holds each lane that has ready keys and is below its group's limit, once, in the order of their turns.
	turns ring.Ring[*lane[K]]
	// held holds the lanes that have ready keys and are at their group's limit, in no particular order. Invariant:
	// held[l.held-1] == l.
	held []*lane[K]
	// spare holds lanes for reuse.
	spare []*lane[K]
	// count is the number of ready keys.
	count int
	// running is how many slots of the limit for all keys are taken.
	running int
}

// lane holds the ready keys of one group.
type lane[K comparable] struct {
	group string
	order Order[K]
	// running is the number of keys of the group in processing. It is not maintained if there are no limits.
	running int
	// inTurns reports whether the lane is in Fair.turns. held is its place in Fair.held, counted from 1, or 0 if it is
	// not there.
	inTurns bool
	held    int
}

// keepLanes is how many unused lanes a Fair keeps.
const keepLanes = 64

// NewFair returns an empty order. group names the group of a key; nil puts all keys in one. within makes the order of
// the keys of one group; nil is first in, first out.
func NewFair[K comparable](group func(key K) string, within func() Order[K], l Limits) *Fair[K] {
	if group == nil {
		group = func(K) string { return "" }
	}
	if within == nil {
		within = func() Order[K] { return new(fifo[K]) }
	}
	return &Fair[K]{group: group, within: within, limits: l, lanes: make(map[string]*lane[K])}
}

// GroupOf implements [Grouper].
func (f *Fair[K]) GroupOf() func(key K) string { return f.group }

// Push adds a run at the end of its group. A group that had no ready keys takes its turn after all groups that had
// some.
func (f *Fair[K]) Push(run *Run[K]) {
	l := f.lanes[run.Group]
	if l == nil {
		l = f.newLane(run.Group)
		f.lanes[run.Group] = l
	}
	l.order.Push(run)
	f.count++
	f.place(l)
}

// Pop returns the first run of the group whose turn it is.
func (f *Fair[K]) Pop() *Run[K] {
	l := f.turns.Pop()
	l.inTurns = false
	run := l.order.Pop()
	f.count--
	if f.limited() {
		l.running++
		f.running++
	}
	f.place(l)
	return run
}

// CanPop reports whether the limits let a key be handed out now.
func (f *Fair[K]) CanPop() bool {
	return f.turns.Len() > 0 && (f.limits.All <= 0 || f.running < f.limits.All)
}

// Done frees the run's slot for another key.
func (f *Fair[K]) Done(run *Run[K]) {
	if !f.limited() {
		return
	}
	l := f.lanes[run.Group]
	l.running--
	if !run.Released {
		f.running--
	}
	f.place(l)
}

// Release frees the slot of a run in processing, so that another key can be handed out in its place. The run still
// counts towards the limit of its group.
func (f *Fair[K]) Release(run *Run[K]) {
	if f.limited() && !run.Released {
		run.Released = true
		f.running--
	}
}

// Touch passes a change of priority on to the group. It does not change whose turn it is.
func (f *Fair[K]) Touch(run *Run[K]) { f.lanes[run.Group].order.Touch(run) }

// Len returns the number of runs, those held back included.
func (f *Fair[K]) Len() int { return f.count }

// All yields the runs in any order.
func (f *Fair[K]) All() iter.Seq[*Run[K]] {
	return func(yield func(*Run[K]) bool) {
		for _, lanes := range []iter.Seq[*lane[K]]{f.turns.All(), slices.Values(f.held)} {
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

func (f *Fair[K]) limited() bool { return f.limits.PerGroup > 0 || f.limits.All > 0 }

// place puts a lane where it belongs now: into turns or into held, or out of lanes if its group has no keys left.
func (f *Fair[K]) place(l *lane[K]) {
	ready, full := l.order.Len() > 0, f.limits.PerGroup > 0 && l.running >= f.limits.PerGroup
	if hold := ready && full; hold != (l.held > 0) {
		f.hold(l, hold)
	}
	switch {
	case ready && !full && !l.inTurns:
		l.inTurns = true
		f.turns.Push(l)
	case !ready && l.running == 0:
		delete(f.lanes, l.group)
		if len(f.spare) < keepLanes {
			f.spare = append(f.spare, l)
		}
	}
}

// hold adds a lane to held, or removes it.
func (f *Fair[K]) hold(l *lane[K], hold bool) {
	if hold {
		f.held = append(f.held, l)
		l.held = len(f.held)
		return
	}
	last := len(f.held) - 1
	f.held[l.held-1] = f.held[last]
	f.held[l.held-1].held = l.held
	f.held[last], f.held, l.held = nil, f.held[:last], 0
}

func (f *Fair[K]) newLane(group string) *lane[K] {
	n := len(f.spare)
	if n == 0 {
		return &lane[K]{group: group, order: f.within()}
	}
	l := f.spare[n-1]
	f.spare = f.spare[:n-1]
	l.group = group
	return l
}

// fifo is first in, first out.
type fifo[K comparable] struct{ runs ring.Ring[*Run[K]] }

func (f *fifo[K]) Push(run *Run[K])       { f.runs.Push(run) }
func (f *fifo[K]) Pop() *Run[K]           { return f.runs.Pop() }
func (f *fifo[K]) Touch(*Run[K])          {}
func (f *fifo[K]) Len() int               { return f.runs.Len() }
func (f *fifo[K]) All() iter.Seq[*Run[K]] { return f.runs.All() }
