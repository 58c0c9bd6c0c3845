package workqueue

import (
	"time"

	"github.com/flyball-dev/flyball/workqueue/internal/ring"
)

// delay is one pending delay of one key. It holds no pointer, so the garbage collector does not scan a heap of a
// million delays.
type delay struct {
	// deadline is when the key becomes dirty, on the queue's clock.
	deadline time.Duration
	// sequence orders delays with equal deadlines: first in, first out. It is compared modulo 2³².
	sequence uint32
	// target is the id of the key's entry, times two, plus the delayKind.
	target uint32
}

func (d delay) owner() (id uint32, kind delayKind) { return d.target >> 1, delayKind(d.target & 1) }

func (d delay) before(other delay) bool {
	if d.deadline != other.deadline {
		return d.deadline < other.deadline
	}
	return int32(d.sequence-other.sequence) < 0
}

// append adds an element at the end; fix must follow.
func (d *delays[K]) append(element delay) {
	if len(d.heap) == cap(d.heap) {
		larger := make([]delay, len(d.heap), max(8, 2*len(d.heap)))
		copy(larger, d.heap)
		d.heap = larger
	}
	d.heap = append(d.heap, element)
}

// remove removes the element at i and returns the id of its entry.
func (d *delays[K]) remove(i int, entries *table[K]) uint32 {
	id, kind := d.heap[i].owner()
	entries.at(id).delays[kind] = none
	last := len(d.heap) - 1
	moved := d.heap[last]
	d.heap = d.heap[:last]
	switch {
	case last == 0 && cap(d.heap) > ring.Keep:
		d.heap = nil
	case i < last:
		d.heap[i] = moved
		d.fix(i, entries)
	}
	return id
}

// fix moves the element at i to its place in the heap, and updates every entry whose place changes.
func (d *delays[K]) fix(i int, entries *table[K]) {
	element := d.heap[i]
	set := func(i int, element delay) {
		d.heap[i] = element
		id, kind := element.owner()
		entries.at(id).delays[kind] = int32(i)
	}
	for i > 0 && element.before(d.heap[(i-1)/4]) {
		set(i, d.heap[(i-1)/4])
		i = (i - 1) / 4
	}
	for {
		least := d.leastChild(i)
		if least == none || !d.heap[least].before(element) {
			break
		}
		set(i, d.heap[least])
		i = least
	}
	set(i, element)
}

// leastChild returns the place of the earliest child of i, or none.
func (d *delays[K]) leastChild(i int) int {
	first := 4*i + 1
	if first >= len(d.heap) {
		return none
	}
	least := first
	for child := first + 1; child < min(first+4, len(d.heap)); child++ {
		if d.heap[child].before(d.heap[least]) {
			least = child
		}
	}
	return least
}
