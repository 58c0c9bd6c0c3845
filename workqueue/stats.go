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
	// UnfinishedWork is the sum of the times for which the keys in processing have been processed so far, and
	// LongestRunning is the longest of these times. Both are zero unless the queue measures time
	// ([Options.QueueingTime], [Options.Metrics] or [Options.Order]).
	UnfinishedWork, LongestRunning time.Duration
}

// Len returns the number of keys that are ready.
func (q *Queue[K]) Len() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.ready.len()
}

// Stats returns a snapshot of the queue.
func (q *Queue[K]) Stats() Stats {
	q.mu.Lock()
	defer q.mu.Unlock()
	s := Stats{
		Depth: q.ready.len(), Delayed: q.delayed.heap.Len(), Processing: len(q.processing),
		Adds: q.adds, Retries: q.retries,
	}
	now := q.now()
	for _, w := range q.processing {
		if w.entry.dirty {
			s.Again++
		}
		if q.keepsTime {
			s.UnfinishedWork += now - w.began
			s.LongestRunning = max(s.LongestRunning, now-w.began)
		}
	}
	return s
}

// notMeasured stands for a duration that is not to be reported.
const notMeasured = -1

func (q *Queue[K]) observeWork(worked time.Duration) {
	if worked != notMeasured {
		q.metrics.ObserveWorkDuration(worked)
	}
}

// MetricsProvider connects queues to a metrics system. [New] calls it once per queue.
//
// Counters and gauges are pulled: when a provider is scraped, it calls stats for depth, adds, retries and unfinished
// work. It may call stats at any time, from any goroutine. So a stuck worker is visible while it is stuck, and no
// goroutine refreshes gauges between scrapes. Only the two durations are pushed, to the returned [Metrics].
type MetricsProvider interface {
	NewQueueMetrics(name string, stats func() Stats) Metrics
}

// Metrics receives the durations of one queue. Its methods are called without any lock held, on the goroutines
// that call [Queue.Get], [Queue.Next] and [Queue.Done]; they must be safe for concurrent use and should not block.
type Metrics interface {
	// ObserveQueueDuration reports how long a key was ready before it was handed out.
	ObserveQueueDuration(time.Duration)
	// ObserveWorkDuration reports the time between a key's Get and its Done.
	ObserveWorkDuration(time.Duration)
}
