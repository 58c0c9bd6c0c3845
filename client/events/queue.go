package events

import (
	"context"
	"errors"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// errClosed is the error of take when the queue is closed and empty.
var errClosed = errors.New("events queue is closed and empty")

// queue is the bounded buffer between the recorders and the sender. It also has the counters.
type queue struct {
	capacity int
	// closed is closed by close. The sender waits on it to cut a retry delay short.
	closed chan struct{}
	// wake tells the sender that the queue has changed. offer and close send to it. Its capacity is 1, so that they do
	// not block. It is never closed.
	wake chan struct{}

	mu       sync.Mutex
	events   []*corev1.Event // oldest first; invariant: len(events) <= capacity
	isClosed bool
	// stats has all counters but Queued. Invariant: Recorded is the sum of the other counters and of len(events), plus
	// one while the sender has an event.
	stats Stats
	// overflow is how many events did not fit since the last takeOverflow.
	overflow int
}

func newQueue(capacity int) *queue {
	return &queue{capacity: capacity, closed: make(chan struct{}), wake: make(chan struct{}, 1)}
}

// offer appends the event. If the queue is closed or full it only counts the event.
func (q *queue) offer(event *corev1.Event) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.stats.Recorded++
	switch {
	case q.isClosed:
		q.stats.Late++
	case len(q.events) >= q.capacity:
		q.stats.Overflowed++
		q.overflow++
	default:
		q.events = append(q.events, event)
		q.signal()
	}
}

// take removes and returns the oldest event. It waits until there is one.
//
// Errors: errClosed; the error of ctx.
func (q *queue) take(ctx context.Context) (*corev1.Event, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if event, err := q.tryTake(); event != nil || err != nil {
			return event, err
		}
		select {
		case <-q.wake:
		case <-ctx.Done():
		}
	}
}

func (q *queue) tryTake() (*corev1.Event, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.events) == 0 {
		if q.isClosed {
			return nil, errClosed
		}
		return nil, nil
	}
	event := q.events[0]
	q.events[0] = nil
	q.events = q.events[1:]
	return event, nil
}

// close refuses further events. Those in the queue can still be taken.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.isClosed {
		return
	}
	q.isClosed = true
	close(q.closed)
	q.signal()
}

// abandon empties the queue at the end of the drain and returns the events that were in it.
func (q *queue) abandon() []*corev1.Event {
	q.mu.Lock()
	defer q.mu.Unlock()
	left := q.events
	q.events = nil
	q.stats.Undelivered += len(left)
	return left
}

func (q *queue) signal() {
	select {
	case q.wake <- struct{}{}:
	default:
	}
}

func (q *queue) count(change func(*Stats)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	change(&q.stats)
}

func (q *queue) countInvalid() {
	q.count(func(s *Stats) { s.Recorded++; s.Invalid++ })
}

// takeOverflow returns how many events did not fit since the last call.
func (q *queue) takeOverflow() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := q.overflow
	q.overflow = 0
	return n
}

func (q *queue) snapshot() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := q.stats
	s.Queued = len(q.events)
	return s
}
