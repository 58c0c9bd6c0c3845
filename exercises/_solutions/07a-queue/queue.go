// Package queue is the solution of task 07a.
package queue

import "sync"

// Queue hands keys to workers.
type Queue[K comparable] struct {
	mu      sync.Mutex
	changed *sync.Cond

	// order holds the keys that are dirty and not processing, each once.
	order []K
	// dirty holds the keys that need work.
	dirty map[K]bool
	// processing holds the keys that workers have.
	processing map[K]bool

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
		q.pushLocked(key)
	}
}

func (q *Queue[K]) pushLocked(key K) {
	q.order = append(q.order, key)
	q.changed.Signal()
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
	if q.dirty[key] {
		q.pushLocked(key)
	}
}

// Len returns how many keys wait.
func (q *Queue[K]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.order)
}

// ShutDown ends the intake.
func (q *Queue[K]) ShutDown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.shutDown = true
	q.changed.Broadcast()
}
