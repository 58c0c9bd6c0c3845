// Package combining has a mutex to which operations can be left. The goroutine that holds the mutex executes them. So
// a goroutine that only hands something in does not wait behind many that take something out.
//
// The idea is flat combining: Hendler, Incze, Shavit and Tzafrir, "Flat Combining and the Synchronization-Parallelism
// Tradeoff", SPAA 2010.
package combining

import (
	"sync"
	"sync/atomic"
)

// mostLeft is about how many operations may wait to be executed, and mostHelp how often a goroutine executes what came
// in meanwhile before [Mutex.Leave] waits for the mutex. Otherwise the memory would have no bound, and a goroutine
// could be kept busy with the operations of others.
const (
	mostLeft = 256
	mostHelp = 4
)

// Mutex is a mutual exclusion lock. Do must be set before its first use, and not be changed afterwards.
//
// Operations that one goroutine leaves are executed in their order, and before every operation that begins after Leave
// returned.
type Mutex[T any] struct {
	// Do executes an operation that was left. It is called with the mutex held.
	Do func(op *T)

	mu sync.Mutex
	// left is the operation that was left last; it links to those before it. count is how many there are, or were a
	// moment ago.
	left  atomic.Pointer[node[T]]
	count atomic.Int32
	// full reports that operations are to wait for the mutex, because a goroutine has executed those of others for
	// long.
	full  atomic.Bool
	spare sync.Pool // of *node[T]
}

type node[T any] struct {
	op   T
	next *node[T]
}

// Lock waits for the mutex, and executes what was left.
func (m *Mutex[T]) Lock() {
	m.mu.Lock()
	if m.left.Load() != nil {
		m.executeLocked()
	}
}

// TryLock is Lock if the mutex is free. Otherwise it returns false.
func (m *Mutex[T]) TryLock() bool {
	if !m.mu.TryLock() {
		return false
	}
	if m.left.Load() != nil {
		m.executeLocked()
	}
	return true
}

// Unlock releases the mutex.
func (m *Mutex[T]) Unlock() {
	m.mu.Unlock()
	if m.left.Load() != nil {
		m.help()
	}
}

// Leave has op executed: at once if the mutex is free, otherwise by the goroutine that holds it, before it goes on.
func (m *Mutex[T]) Leave(op T) {
	if m.full.Load() || m.count.Load() >= mostLeft {
		waited := op // Else op itself would be moved to the heap, in every call.
		m.Lock()
		m.Do(&waited)
		m.Unlock()
		return
	}
	n, _ := m.spare.Get().(*node[T])
	if n == nil {
		n = new(node[T])
	}
	n.op = op
	m.count.Add(1)
	for {
		n.next = m.left.Load()
		if m.left.CompareAndSwap(n.next, n) {
			break
		}
	}
	m.help()
}

// help executes what was left if nobody else will. A goroutine that holds the mutex at the moment calls help after it
// has released it, so no operation is forgotten.
func (m *Mutex[T]) help() {
	times := 0
	for ; m.left.Load() != nil && m.mu.TryLock(); times++ {
		if times >= mostHelp {
			m.full.Store(true)
		}
		m.executeLocked()
		m.mu.Unlock()
	}
	if times > mostHelp {
		m.full.Store(false)
	}
}

// executeLocked executes what was left, in its order.
func (m *Mutex[T]) executeLocked() {
	var first *node[T] // The list begins with the last.
	for n := m.left.Swap(nil); n != nil; {
		n.next, first, n = first, n, n.next
	}
	for n := first; n != nil; {
		m.count.Add(-1)
		m.Do(&n.op)
		next := n.next
		*n = node[T]{} // A spare keeps nothing alive.
		m.spare.Put(n)
		n = next
	}
}
