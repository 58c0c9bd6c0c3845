// Package delayheap holds the pending delays of a queue, ordered by deadline. Delays with the same deadline are in the
// order in which they were set.
//
// It is a heap with four children per node. To replace or cancel the delay of a key, the queue has to know its place,
// so the heap reports every change of a place.
package delayheap

import (
	"slices"
	"time"

	"github.com/flyball-dev/flyball/workqueue/internal/ring"
)

// None is the place of a delay that is not in a heap.
const None = -1

// Delay is one pending delay. It holds no pointer, so the garbage collector does not scan a heap of a million delays.
type Delay struct {
	// Deadline is when the delay expires, on the queue's clock.
	Deadline time.Duration
	// sequence orders delays with equal deadlines: first in, first out. It is compared modulo 2³².
	sequence uint32
	// Target identifies what is delayed. Only the queue knows its meaning.
	Target uint32
}

func (d Delay) before(other Delay) bool {
	if d.Deadline != other.Deadline {
		return d.Deadline < other.Deadline
	}
	return int32(d.sequence-other.sequence) < 0
}

// Heap is a heap of delays. It is not safe for concurrent use.
type Heap struct {
	delays []Delay
	// sequence is the sequence number of the newest delay.
	sequence uint32
	// moved is called with a target and its new place in delays whenever that changes; None means removed.
	moved func(target uint32, place int32)
}

// New returns an empty heap that reports to moved.
func New(moved func(target uint32, place int32)) Heap { return Heap{moved: moved} }

// Len returns the number of delays.
func (h *Heap) Len() int { return len(h.delays) }

// All returns the delays in no order; the first is the earliest. The heap owns the slice.
func (h *Heap) All() []Delay { return h.delays }

// Push adds a delay.
func (h *Heap) Push(target uint32, deadline time.Duration) {
	if len(h.delays) == cap(h.delays) {
		larger := make([]Delay, len(h.delays), max(8, 2*len(h.delays)))
		copy(larger, h.delays)
		h.delays = larger
	}
	h.delays = append(h.delays, Delay{Target: target})
	h.Set(len(h.delays)-1, deadline)
}

// Set changes the deadline of the delay at a place. Among delays with the same deadline it becomes the last.
func (h *Heap) Set(place int, deadline time.Duration) {
	h.sequence++
	h.delays[place].Deadline, h.delays[place].sequence = deadline, h.sequence
	h.fix(place)
}

// Remove removes the delay at a place and returns its target.
func (h *Heap) Remove(place int) (target uint32) {
	target = h.delays[place].Target
	h.moved(target, None)
	last := len(h.delays) - 1
	moved := h.delays[last]
	h.delays = h.delays[:last]
	switch {
	case last == 0 && cap(h.delays) > ring.Keep:
		h.delays = nil
	case place < last:
		h.delays[place] = moved
		h.fix(place)
	}
	return target
}

// fix moves the delay at i to where it belongs.
func (h *Heap) fix(i int) {
	element := h.delays[i]
	for i > 0 && element.before(h.delays[(i-1)/4]) {
		h.put(i, h.delays[(i-1)/4])
		i = (i - 1) / 4
	}
	for {
		least := h.leastChild(i)
		if least == None || !h.delays[least].before(element) {
			break
		}
		h.put(i, h.delays[least])
		i = least
	}
	h.put(i, element)
}

func (h *Heap) put(i int, d Delay) {
	h.delays[i] = d
	h.moved(d.Target, int32(i))
}

// leastChild returns the place of the earliest child of i, or None.
func (h *Heap) leastChild(i int) int {
	first := 4*i + 1
	if first >= len(h.delays) {
		return None
	}
	least := first
	for child := first + 1; child < min(first+4, len(h.delays)); child++ {
		if h.delays[child].before(h.delays[least]) {
			least = child
		}
	}
	return least
}

// First returns the n earliest delays in order. The next earliest is always a child of one that was already taken, so
// First visits only a small part of a large heap.
func (h *Heap) First(n int) []Delay {
	var taken []Delay
	candidates := []int{0}
	for len(taken) < min(n, len(h.delays)) {
		next := 0
		for i := range candidates {
			if h.delays[candidates[i]].before(h.delays[candidates[next]]) {
				next = i
			}
		}
		at := candidates[next]
		taken = append(taken, h.delays[at])
		candidates = slices.Delete(candidates, next, next+1)
		for child := 4*at + 1; child < min(4*at+5, len(h.delays)); child++ {
			candidates = append(candidates, child)
		}
	}
	return taken
}
