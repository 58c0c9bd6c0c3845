package workqueue

import "time"

// MetricsProvider connects queues to a metrics system. [New] calls it once per queue.
//
// Counters and gauges are pulled: when a provider is scraped, it calls stats for depth, adds, retries and unfinished
// work. It may call stats at any time, from any goroutine. So a stuck worker is visible while it is stuck, and no
// goroutine refreshes gauges that nobody reads. Only the two durations are pushed, to the returned [Metrics].
type MetricsProvider interface {
	NewQueueMetrics(name string, stats func() Stats) Metrics
}

// Metrics receives the durations of one queue. Its methods are called without any lock held, on the goroutines
// that call [Queue.Get] and [Queue.Done]; they must be safe for concurrent use and should not block.
type Metrics interface {
	// ObserveQueueDuration reports how long a key was ready before it was handed out.
	ObserveQueueDuration(time.Duration)
	// ObserveWorkDuration reports the time between a key's Get and its Done.
	ObserveWorkDuration(time.Duration)
}
