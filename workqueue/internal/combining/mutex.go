// Package combining has a mutex to which operations can be delegated: the goroutine that holds the mutex executes them.
// So a goroutine that only puts something in does not wait behind many that take something out.
//
// The idea is flat combining: Hendler, Incze, Shavit and Tzafrir, "Flat Combining and the Synchronization-Parallelism
// Tradeoff", SPAA 2010.
package combining

import (
	"sync"
	"sync/atomic"
)

const (
	// maxPending is about how many operations may wait to be executed, so that their memory is bounded.
	maxPending = 256
	// maxRounds is how often in a row an Unlock or Delegate executes what was delegated meanwhile. After that, Delegate
	// waits for the mutex. Otherwise one goroutine could be kept busy with the operations of others.
	maxRounds = 4
)

// Mutex is a mutual exclusion lock. Do must be set before its first use, and not be changed afterwards.
//
// The operations that one goroutine delegates are executed in their order, and before every operation that begins after
// Delegate returned.
type Mutex[T any] struct {
	// Do executes a delegated operation. It is called with the mutex held.
	Do func(op *T)

	mu sync.Mutex
	// pending is a stack of the delegated operations, linked from the last to the first. count is its size, or was a
	// moment ago.
	pending atomic.Pointer[node[T]]
	count   atomic.Int32
	// overloaded is set while a goroutine has executed operations for more than maxRounds rounds.
	overloaded atomic.Bool
	spare      sync.Pool // of *node[T]
}

type node[T any] struct {
	op   T
	next *node[T]
}

// Lock waits for the mutex, and executes the pending operations.
func (m *Mutex[T]) Lock() {
	m.mu.Lock()
	if m.pending.Load() != nil {
		m.executeLocked()
	}
}

// TryLock is Lock if the mutex is free. Otherwise it returns false.
func (m *Mutex[T]) TryLock() bool {
	if !m.mu.TryLock() {
		return false
	}
	if m.pending.Load() != nil {
		m.executeLocked()
	}
	return true
}

// Unlock releases the mutex. Then it executes the operations that were delegated meanwhile.
func (m *Mutex[T]) Unlock() {
	m.mu.Unlock()
	if m.pending.Load() != nil {
		m.execute()
	}
}

// Delegate has a copy of op executed: by the goroutine that holds the mutex, right after it releases it, or at once if
// the mutex is free.
func (m *Mutex[T]) Delegate(op *T) {
	if m.overloaded.Load() || m.count.Load() >= maxPending {
		moved := *op // If Do got op itself, every caller's would be allocated on the heap.
		m.Lock()
		m.Do(&moved)
		m.Unlock()
		return
	}
	n, _ := m.spare.Get().(*node[T])
	if n == nil {
		n = new(node[T])
	}
	n.op = *op
	m.count.Add(1)
	for {
		n.next = m.pending.Load()
		if m.pending.CompareAndSwap(n.next, n) {
			break
		}
	}
	m.execute()
}

// execute executes the pending operations unless another goroutine will. A goroutine that holds the mutex now calls
// execute after it has released it, so no operation is forgotten.
func (m *Mutex[T]) execute() {
	rounds := 0
	for ; m.pending.Load() != nil && m.mu.TryLock(); rounds++ {
		if rounds >= maxRounds {
			m.overloaded.Store(true)
		}
		m.executeLocked()
		m.mu.Unlock()
	}
	if rounds > maxRounds {
		m.overloaded.Store(false)
	}
}

// executeLocked executes the pending operations in the order in which they were delegated.
func (m *Mutex[T]) executeLocked() {
	var first *node[T]
	for n := m.pending.Swap(nil); n != nil; { // Reverse the stack.
		n.next, first, n = first, n, n.next
	}
	for n := first; n != nil; {
		m.count.Add(-1)
		m.Do(&n.op)
		next := n.next
		*n = node[T]{} // A spare node must keep nothing alive.
		m.spare.Put(n)
		n = next
	}
}
