package chapter06

import "sync"

// A queues is the second idea: each handler has a queue and a goroutine.
type queues struct {
	cache    *mirror
	handlers []*handlerQueue
}

func (f *queues) Apply(c change) {
	f.cache.set(c)
	for _, q := range f.handlers {
		q.push(c)
	}
}

// A handlerQueue holds what one handler has not been told yet.
type handlerQueue struct {
	mu      sync.Mutex
	changed *sync.Cond
	changes []change
	ended   bool
}

// newHandlerQueue starts the goroutine that calls handle, until end.
func newHandlerQueue(handle func(change)) *handlerQueue {
	q := &handlerQueue{}
	q.changed = sync.NewCond(&q.mu)
	go func() {
		for {
			c, ok := q.pop()
			if !ok {
				return
			}
			handle(c)
		}
	}()
	return q
}

func (q *handlerQueue) push(c change) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.changes = append(q.changes, c)
	q.changed.Signal()
}

func (q *handlerQueue) pop() (c change, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.changes) == 0 && !q.ended {
		q.changed.Wait()
	}
	if q.ended {
		return c, false
	}
	c, q.changes = q.changes[0], q.changes[1:]
	return c, true
}

func (q *handlerQueue) len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.changes)
}

func (q *handlerQueue) end() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	q.changed.Signal()
}
