// Package ring is a first-in, first-out buffer.
package ring

import "iter"

// Ring is a first-in, first-out buffer.
type Ring[T any] struct {
	// slots holds the elements. Invariant: its length is zero or a power of two.
	slots []T
	// head counts pops and tail pushes, so tail-head is the length. Modulo len(slots) they are indexes of slots.
	head, tail uint
}

// Keep is the length of the largest buffer that an empty ring keeps. A delayheap keeps as much.
const Keep = 1024

// Len returns the number of elements.
func (r *Ring[T]) Len() int { return int(r.tail - r.head) }

// Push adds an element at the end, and returns its place for [Ring.Clear].
func (r *Ring[T]) Push(element T) (place uint) {
	if r.Len() == len(r.slots) {
		r.grow()
	}
	r.slots[r.tail&uint(len(r.slots)-1)] = element
	r.tail++
	return r.tail - 1
}

// Clear replaces the element at a place by the zero value. It must not have been popped.
func (r *Ring[T]) Clear(place uint) { r.slots[place&uint(len(r.slots)-1)] = *new(T) }

// Pop returns the oldest element. The ring must not be empty.
func (r *Ring[T]) Pop() T {
	slot := &r.slots[r.head&uint(len(r.slots)-1)]
	element := *slot
	*slot = *new(T)
	r.head++
	if r.head == r.tail && len(r.slots) > Keep {
		r.slots = nil
	}
	return element
}

// grow doubles the buffer. The elements keep their places.
func (r *Ring[T]) grow() {
	slots := make([]T, max(8, 2*len(r.slots)))
	for i := r.head; i != r.tail; i++ {
		slots[i&uint(len(slots)-1)] = r.slots[i&uint(len(r.slots)-1)]
	}
	r.slots = slots
}

// All yields the elements, oldest first.
func (r *Ring[T]) All() iter.Seq[T] {
	return func(yield func(T) bool) {
		for i := r.head; i != r.tail; i++ {
			if !yield(r.slots[i&uint(len(r.slots)-1)]) {
				return
			}
		}
	}
}

// Cap returns the length of the buffer.
func (r *Ring[T]) Cap() int { return len(r.slots) }
