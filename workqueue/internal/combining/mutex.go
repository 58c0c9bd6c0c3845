// Package combining has a mutex to which operations can be delegated: the goroutine that holds the mutex executes them.
// So a producer does not wait for the mutex behind many consumers.
//
// The idea is flat combining: Hendler, Incze, Shavit and Tzafrir, "Flat Combining and the Synchronization-Parallelism
// Tradeoff", SPAA 2010.
package combining

import (
	"sync"
	"sync/atomic"
)

const (
	// maxPending bounds, approximately, the operations that wait to be executed, and so their memory.
	maxPending = 256
	// maxRounds is how often in a row one goroutine executes the operations that others have delegated in the meantime.
	// After that, the calls of Delegate in other goroutines wait for the mutex instead. Otherwise others could keep
	// this goroutine busy for ever.
	maxRounds = 4
)

// Mutex is a mutual exclusion lock. Do must be set before its first use, and not be changed afterwards.
//
// The operations that one goroutine delegates are executed in order. A goroutine that acquires the mutex after Delegate
// has returned finds the operation executed.
type Mutex[T any] struct {
	// Do executes a delegated operation. It is called with the mutex held.
	Do func(op *T)

	mu sync.Mutex
	// holds counts how often the mutex was acquired.
	holds uint64
	// pending is a stack of the delegated operations, linked from the last to the first. count is approximately its
	// size.
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
	m.holds++
	if m.pending.Load() != nil {
		m.executeLocked()
	}
}

// TryLock is Lock if the mutex is free. Otherwise it returns false.
func (m *Mutex[T]) TryLock() bool {
	if !m.mu.TryLock() {
		return false
	}
	m.holds++
	if m.pending.Load() != nil {
		m.executeLocked()
	}
	return true
}

// Hold returns the number of the current hold of the mutex, which differs from those of all others. It must be called
// with the mutex held.
func (m *Mutex[T]) Hold() uint64 { return m.holds }

// Unlock releases the mutex. Then it executes the operations that were delegated meanwhile.
func (m *Mutex[T]) Unlock() {
	m.mu.Unlock()
	if m.pending.Load() != nil {
		m.execute()
	}
}

// Delegate hands over a copy of op for execution. If the mutex is free, Delegate executes it at once; otherwise the
// goroutine that holds the mutex executes it right after releasing the mutex.
func (m *Mutex[T]) Delegate(op *T) {
	if m.overloaded.Load() || m.count.Load() >= maxPending {
		moved := *op // A copy, because passing op itself to Do would move the op of every caller to the heap.
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
		m.holds++
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
