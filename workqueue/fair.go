package workqueue

import "iter"

// FairOptions configures a [FairOrder].
type FairOptions[K comparable] struct {
	// Group names the group of a key, for example its namespace. It is called under the queue's lock and must be a pure
	// function of the key. Nil puts all keys in one group.
	Group func(key K) string
	// Within makes the order of one group's keys. Nil means first in, first out.
	Within func() Order[K]
}

// FairOrder takes one key of each group in turn, so that one group's storm does not delay another group's single key:
// with g groups waiting, a group's first key is handed out after at most g-1 others.
type FairOrder[K comparable] struct {
	o FairOptions[K]
	// lanes are the groups with ready keys, by name.
	lanes map[string]*lane[K]
	// turns has each lane once, the next first.
	turns ring[*lane[K]]
	// spare are lanes that no group uses.
	spare []*lane[K]
	count int
}

// lane holds the ready keys of one group.
type lane[K comparable] struct {
	group string
	order Order[K]
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
	return &FairOrder[K]{o: o, lanes: make(map[string]*lane[K])}
}

// Push takes in a run at the end of its group. A group that had no keys has its turn after those that have.
func (f *FairOrder[K]) Push(run *Ready[K]) {
	group := f.o.Group(run.Key)
	l := f.lanes[group]
	if l == nil {
		l = f.newLane(group)
		f.lanes[group] = l
		f.turns.push(l)
	}
	l.order.Push(run)
	f.count++
}

// Pop returns the first run of the group whose turn it is.
func (f *FairOrder[K]) Pop() *Ready[K] {
	l := f.turns.pop()
	run := l.order.Pop()
	f.count--
	if l.order.Len() > 0 {
		f.turns.push(l)
		return run
	}
	delete(f.lanes, l.group)
	if len(f.spare) < keepLanes {
		f.spare = append(f.spare, l)
	}
	return run
}

// Touch passes a change of priority on to the group. It does not change whose turn it is.
func (f *FairOrder[K]) Touch(run *Ready[K]) { f.lanes[f.o.Group(run.Key)].order.Touch(run) }

// Len returns the number of runs.
func (f *FairOrder[K]) Len() int { return f.count }

// All yields the runs in any order.
func (f *FairOrder[K]) All() iter.Seq[*Ready[K]] {
	return func(yield func(*Ready[K]) bool) {
		for l := range f.turns.all() {
			for run := range l.order.All() {
				if !yield(run) {
					return
				}
			}
		}
	}
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
