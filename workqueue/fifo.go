package workqueue

import "iter"

// fifo is a ring buffer: first in, first out. It shrinks to nothing when it has been large and becomes empty.
type fifo[K comparable] struct {
	// ring holds the entries. Invariant: its length is zero or a power of two.
	ring []*entry[K]
	// head counts pops and tail pushes, so tail-head is the length. Modulo len(ring) they are indexes.
	head, tail uint
}

// keepRing is the largest ring that an empty fifo keeps.
const keepRing = 1024

func (f *fifo[K]) len() int { return int(f.tail - f.head) }

func (f *fifo[K]) push(e *entry[K]) {
	if f.len() == len(f.ring) {
		f.grow()
	}
	f.ring[f.tail&uint(len(f.ring)-1)] = e
	f.tail++
}

// pop returns the oldest entry. The fifo must not be empty.
func (f *fifo[K]) pop() *entry[K] {
	slot := &f.ring[f.head&uint(len(f.ring)-1)]
	e := *slot
	*slot = nil
	f.head++
	if f.head == f.tail && len(f.ring) > keepRing {
		f.ring = nil
	}
	return e
}

// grow doubles the ring and moves the entries to its beginning.
func (f *fifo[K]) grow() {
	ring := make([]*entry[K], max(8, 2*len(f.ring)))
	n := f.len()
	for i := range n {
		ring[i] = f.ring[(f.head+uint(i))&uint(len(f.ring)-1)]
	}
	f.ring, f.head, f.tail = ring, 0, uint(n)
}

// all yields the entries, oldest first.
func (f *fifo[K]) all() iter.Seq[*entry[K]] {
	return func(yield func(*entry[K]) bool) {
		for i := f.head; i != f.tail; i++ {
			if !yield(f.ring[i&uint(len(f.ring)-1)]) {
				return
			}
		}
	}
}
