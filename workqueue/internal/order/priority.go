package order

import (
	"iter"
	"math"
	"time"
)

// Priority hands out keys of higher priority first, and keys of equal priority first in, first out. Keys age: a key
// of priority p that became ready at t comes before all keys of priority p+n that become ready after t + n·Age. So a
// key of high priority overtakes keys of low priority, but the time by which it delays them is bounded.
//
// A key's rank never changes while it ages: all keys age equally fast, so their relative order stays the same. The
// order is that of Since - Priority·Age: one step of priority is worth as much as having become ready Age earlier.
type Priority[K comparable] struct {
	age time.Duration
	// heap is a binary heap by (rank, sequence). Invariant: heap[i].run.Place == i.
	heap     []ranked[K]
	sequence uint64
}

// ranked is a run in a Priority.
type ranked[K comparable] struct {
	rank     time.Duration
	sequence uint64
	run      *Run[K]
}

func (r *ranked[K]) before(other *ranked[K]) bool {
	if r.rank != other.rank {
		return r.rank < other.rank
	}
	return r.sequence < other.sequence
}

// NewPriority returns an empty order. age is the waiting time that is worth one step of priority.
func NewPriority[K comparable](age time.Duration) *Priority[K] {
	return &Priority[K]{age: max(age, 1)}
}

// rank returns Since - Priority·Age, clamped so that it does not overflow. Since is not negative.
func (o *Priority[K]) rank(run *Run[K]) time.Duration {
	most := int(math.MaxInt64/2) / int(o.age)
	ahead := time.Duration(min(max(run.Priority, -most), most)) * o.age
	return min(run.Since, math.MaxInt64/2) - ahead
}

// Push adds a run.
func (o *Priority[K]) Push(run *Run[K]) {
	o.sequence++
	run.Place = len(o.heap)
	o.heap = append(o.heap, ranked[K]{rank: o.rank(run), sequence: o.sequence, run: run})
	o.up(run.Place)
}

// Pop removes and returns the first run.
func (o *Priority[K]) Pop() *Run[K] {
	first := o.heap[0].run
	last := len(o.heap) - 1
	moved := o.heap[last]
	o.heap[last] = ranked[K]{}
	o.heap = o.heap[:last]
	if last > 0 {
		o.down(moved)
	}
	return first
}

// Touch moves a run whose priority has risen.
func (o *Priority[K]) Touch(run *Run[K]) {
	if rank := o.rank(run); rank < o.heap[run.Place].rank {
		o.heap[run.Place].rank = rank
		o.up(run.Place)
	}
}

// Len returns the number of runs.
func (o *Priority[K]) Len() int { return len(o.heap) }

// All yields the runs in any order.
func (o *Priority[K]) All() iter.Seq[*Run[K]] {
	return func(yield func(*Run[K]) bool) {
		for i := range o.heap {
			if !yield(o.heap[i].run) {
				return
			}
		}
	}
}

func (o *Priority[K]) set(i int, r ranked[K]) {
	o.heap[i] = r
	r.run.Place = i
}

// up moves the element at i towards the root until its parent comes before it.
func (o *Priority[K]) up(i int) {
	r := o.heap[i]
	for i > 0 && r.before(&o.heap[(i-1)/2]) {
		o.set(i, o.heap[(i-1)/2])
		i = (i - 1) / 2
	}
	o.set(i, r)
}

// down puts an element at the root and moves it down to its place.
func (o *Priority[K]) down(r ranked[K]) {
	i := 0
	for {
		child := 2*i + 1
		if child+1 < len(o.heap) && o.heap[child+1].before(&o.heap[child]) {
			child++
		}
		if child >= len(o.heap) || !o.heap[child].before(&r) {
			break
		}
		o.set(i, o.heap[child])
		i = child
	}
	o.set(i, r)
}
