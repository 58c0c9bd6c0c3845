package events

import (
	"context"
	"errors"
	"sync"

	corev1 "k8s.io/api/core/v1"
)

// errClosed is what take returns when the intake is closed and everything was handed out.
var errClosed = errors.New("events queue is closed and empty")

// queue is the bounded buffer between those who record and the one who sends. It also keeps the books.
type queue struct {
	capacity int
	// closed is closed by close, once: the intake is shut. The sender waits on it to cut a retry delay short.
	closed chan struct{}
	// wake tells the one taker that something changed. Sent to by offer and close, capacity 1 so that neither blocks.
	wake chan struct{}

	mu       sync.Mutex
	events   []*corev1.Event // invariant: len(events) <= capacity, oldest first
	isClosed bool
	// stats counts everything but Queued. Invariant: Recorded = len(events) + the one in the sender's hands + every
	// other counter.
	stats Stats
	// overflow is how many events did not fit since the sender last asked.
	overflow int
}

func newQueue(capacity int) *queue {
	return &queue{capacity: capacity, closed: make(chan struct{}), wake: make(chan struct{}, 1)}
}

// offer appends the event, or counts why it did not.
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

// take removes the oldest event, waiting for one. Errors: errClosed, or the context's.
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

// close shuts the intake; what is queued can still be taken.
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

// abandon empties the queue at the end of the drain and returns what was in it.
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

// count applies one change to the books.
func (q *queue) count(change func(*Stats)) {
	q.mu.Lock()
	defer q.mu.Unlock()
	change(&q.stats)
}

func (q *queue) countInvalid() {
	q.count(func(s *Stats) { s.Recorded++; s.Invalid++ })
}

// takeOverflow returns how many events did not fit since it was last called.
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
