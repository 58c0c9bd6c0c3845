package workqueue

import "iter"

// ring is a first-in, first-out buffer.
type ring[T any] struct {
	// slots holds the elements. Invariant: its length is zero or a power of two.
	slots []T
	// head counts pops and tail pushes, so tail-head is the length. Modulo len(slots) they are indexes of slots.
	head, tail uint
}

// keepSlots is the largest buffer that an empty ring keeps.
const keepSlots = 1024

func (r *ring[T]) len() int { return int(r.tail - r.head) }

func (r *ring[T]) push(element T) {
	if r.len() == len(r.slots) {
		r.grow()
	}
	r.slots[r.tail&uint(len(r.slots)-1)] = element
	r.tail++
}

// pop returns the oldest element. The ring must not be empty.
func (r *ring[T]) pop() T {
	slot := &r.slots[r.head&uint(len(r.slots)-1)]
	element := *slot
	*slot = *new(T)
	r.head++
	if r.head == r.tail && len(r.slots) > keepSlots {
		r.slots = nil
	}
	return element
}

// grow doubles the buffer and moves the elements to its beginning.
func (r *ring[T]) grow() {
	slots := make([]T, 0, max(8, 2*len(r.slots)))
	for element := range r.all() {
		slots = append(slots, element)
	}
	r.head, r.tail = 0, uint(len(slots))
	r.slots = slots[:cap(slots)]
}

// all yields the elements, oldest first.
func (r *ring[T]) all() iter.Seq[T] {
	return func(yield func(T) bool) {
		for i := r.head; i != r.tail; i++ {
			if !yield(r.slots[i&uint(len(r.slots)-1)]) {
				return
			}
		}
	}
}
