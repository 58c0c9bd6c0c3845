// Package metrics exports the metrics of queues to Prometheus, under the names that Kubernetes components use:
//
//	workqueue.Queue ──durations──▶ Provider ◀──scrape── prometheus
//	                ◀───Stats────┘
//
// Durations are pushed when they are measured. Everything else is read from the queues at a scrape: a stuck worker
// shows in workqueue_unfinished_work_seconds while it is stuck, and a queue that is not scraped pays nothing.
package metrics
