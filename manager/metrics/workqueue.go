package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/flyball-dev/flyball/workqueue"
)

// The metrics of queues.
//
// Source: k8s.io/component-base v0.37.2 metrics/prometheus/workqueue/metrics.go, for names, help and buckets.
var (
	queueDepth      = newFamily("workqueue_depth", "Current depth of workqueue", "name")
	queueAdds       = newFamily("workqueue_adds_total", "Total number of adds handled by workqueue", "name")
	queueRetries    = newFamily("workqueue_retries_total", "Total number of retries handled by workqueue", "name")
	queueUnfinished = newFamily("workqueue_unfinished_work_seconds",
		"How many seconds of work has been done that is in progress and has not been observed by work_duration. "+
			"Large values indicate stuck threads. One can deduce the number of stuck threads by observing the rate at "+
			"which this increases.", "name")
	queueLongest = newFamily("workqueue_longest_running_processor_seconds",
		"How many seconds has the longest running processor for workqueue been running.", "name")
	// client-go has no such metrics: its delayed keys are not visible.
	queueDelayed    = newFamily("workqueue_delayed", "Current number of keys that wait for their time to come", "name")
	queueProcessing = newFamily("workqueue_processing", "Current number of keys that are being worked on", "name")
)

func collectQueue(out chan<- prometheus.Metric, name string, s workqueue.Stats) {
	queueDepth.gauge(out, float64(s.Depth), name)
	queueDelayed.gauge(out, float64(s.Delayed), name)
	queueProcessing.gauge(out, float64(s.Processing), name)
	queueAdds.counter(out, float64(s.Adds), name)
	queueRetries.counter(out, float64(s.Retries), name)
	queueUnfinished.gauge(out, s.UnfinishedWork.Seconds(), name)
	queueLongest.gauge(out, s.LongestRunning.Seconds(), name)
}

// queueDurations are the two histograms of all queues.
type queueDurations struct {
	queue, work *prometheus.HistogramVec
}

func newQueueDurations() *queueDurations {
	histogram := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: name, Help: help, Buckets: prometheus.ExponentialBuckets(10e-9, 10, 12),
		}, []string{"name"})
	}
	return &queueDurations{
		queue: histogram("workqueue_queue_duration_seconds",
			"How long in seconds an item stays in workqueue before being requested."),
		work: histogram("workqueue_work_duration_seconds",
			"How long in seconds processing an item from workqueue takes."),
	}
}

func (d *queueDurations) of(name string) workqueue.Metrics {
	return &durationsOfOne{queue: d.queue.WithLabelValues(name), work: d.work.WithLabelValues(name)}
}

// durationsOfOne implements [workqueue.Metrics].
type durationsOfOne struct {
	queue, work prometheus.Observer
}

func (d *durationsOfOne) ObserveQueueDuration(t time.Duration) { d.queue.Observe(t.Seconds()) }
func (d *durationsOfOne) ObserveWorkDuration(t time.Duration)  { d.work.Observe(t.Seconds()) }
