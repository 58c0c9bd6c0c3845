package workqueue

import "time"

// Stats is a snapshot of a queue.
type Stats struct {
	// Depth is the number of keys that are ready, Delayed the number of pending delays, and Processing the number of
	// keys that were handed out and are not done.
	Depth, Delayed, Processing int
	// Again is the number of keys in processing that have been added again: they become ready when they are done.
	Again int
	// Adds counts the adds that queued a key. An Add of a key that is already queued does not count.
	Adds uint64
	// Retries counts AddRateLimited calls.
	Retries uint64
	// UnfinishedWork is the total time that the keys in processing have been there, and LongestRunning the longest of
	// them. Both are zero unless the queue measures time ([Options.QueueingTime], [Options.Metrics] or
	// [Options.Order]).
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
