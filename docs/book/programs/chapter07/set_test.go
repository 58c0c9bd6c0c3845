// Package chapter07 has the programs of the chapter about the work queue: four designs of a queue, of which three are
// wrong, and the scenario that tells them apart.
package chapter07

import "sync"

// A setQueue is the second idea: each key waits at most once.
type setQueue struct {
	mu      sync.Mutex
	changed *sync.Cond
	order   []string
	waiting map[string]bool
}

func newSetQueue() *setQueue {
	q := &setQueue{waiting: map[string]bool{}}
	q.changed = sync.NewCond(&q.mu)
	return q
}

func (q *setQueue) Add(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting[key] {
		return
	}
	q.waiting[key] = true
	q.order = append(q.order, key)
	q.changed.Signal()
}

func (q *setQueue) Get() string {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.order) == 0 {
		q.changed.Wait()
	}
	key := q.order[0]
	q.order = q.order[1:]
	delete(q.waiting, key)
	return key
}

func (q *setQueue) Done(string) {}

// A strictSetQueue is the third idea: a key stays in the set until its worker is done with it.
type strictSetQueue struct{ *setQueue }

func (q strictSetQueue) Get() string {
	key := q.setQueue.Get()
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting[key] = true
	return key
}

func (q strictSetQueue) Done(key string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.waiting, key)
}
