package workqueue

import "time"

// Stats is a snapshot of a queue.
type Stats struct {
	// Depth is the number of ready keys, Delayed of delays pending, Processing of keys handed out and not done.
	Depth, Delayed, Processing int
	// Again is the number of keys in processing that were added meanwhile: they are ready when they are done.
	Again int
	// Adds counts the keys that became wanted: an Add of a key that is already queued is not counted.
	Adds uint64
	// Retries counts AddRateLimited calls.
	Retries uint64
	// UnfinishedWork is the sum, LongestRunning the maximum, of how long the keys in processing have been so.
	// Both are zero unless the queue keeps time ([Options.QueueingTime] or [Options.Metrics]).
	UnfinishedWork, LongestRunning time.Duration
}

// Len returns the number of keys that are ready.
func (q *Queue[K]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.readyLocked()
}

// Stats returns a snapshot of the queue.
func (q *Queue[K]) Stats() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := Stats{
		Depth: q.readyLocked(), Delayed: len(q.delayed.heap), Processing: len(q.processing),
		Adds: q.adds, Retries: q.retries,
	}
	for i := range q.processing {
		if q.processing[i].entry.dirty {
			s.Again++
		}
	}
	if !q.keepsTime {
		return s
	}
	now := q.now()
	for i := range q.processing {
		running := now - q.processing[i].began
		s.UnfinishedWork += running
		s.LongestRunning = max(s.LongestRunning, running)
	}
	return s
}
