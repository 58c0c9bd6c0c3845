// Package queue is task 07c: a drain that ends too early.
//
// This queue is that of task 07a with one more method. A program calls Drain at its end: Drain stops the intake and
// waits until the workers have finished the remaining keys. The program then exits.
//
// The program loses work. According to its log, keys were still waiting when Drain returned. It happens only sometimes,
// and most often with few workers and long queues. client-go v0.37.2 has this bug in util/workqueue/queue.go, and
// kubernetes/kubernetes#141079 reports it.
//
// Run the tests, read the code, and find out why. The fix is small. Before you change Drain, say what it waits for.
package queue

import "sync"

// Queue hands keys to workers.
type Queue[K comparable] struct {
	mu      sync.Mutex
	changed *sync.Cond

	// order holds the keys that are dirty and not processing, each once.
	order []K
	// dirty holds the keys that need work, and processing those that workers have.
	dirty, processing map[K]bool

	shutDown bool
}

// New returns an empty queue.
func New[K comparable]() *Queue[K] {
	q := &Queue[K]{dirty: map[K]bool{}, processing: map[K]bool{}}
	q.changed = sync.NewCond(&q.mu)
	return q
}

// Add puts a key into the queue.
func (q *Queue[K]) Add(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.shutDown || q.dirty[key] {
		return
	}
	q.dirty[key] = true
	if !q.processing[key] {
		q.order = append(q.order, key)
		q.changed.Signal()
	}
}

// Get takes the next key. It waits for one, or returns false if the queue is shut down and no key waits.
func (q *Queue[K]) Get() (key K, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.order) == 0 {
		if q.shutDown {
			return key, false
		}
		q.changed.Wait()
	}
	key, q.order = q.order[0], q.order[1:]
	q.processing[key] = true
	delete(q.dirty, key)
	return key, true
}

// Done ends the work on a key.
func (q *Queue[K]) Done(key K) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.processing[key] {
		return
	}
	delete(q.processing, key)
	switch {
	case q.dirty[key]:
		q.order = append(q.order, key)
		q.changed.Signal()
	case len(q.processing) == 0:
		q.changed.Signal() // for Drain
	}
}

// Len returns how many keys wait.
func (q *Queue[K]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.order)
}

// Drain ends the intake and waits until the workers have finished the remaining keys. Several calls may wait at the
// same time.
func (q *Queue[K]) Drain() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.shutDown = true
	q.changed.Broadcast()
	for len(q.processing) > 0 {
		q.changed.Wait()
	}
}
