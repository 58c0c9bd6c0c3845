package metrics

import (
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/flyball-dev/flyball/workqueue"
)

// Provider is a [workqueue.MetricsProvider] and a [prometheus.Collector]. Each metric has one label, name, which is the
// queue's name.
//
// Source: k8s.io/component-base v0.37.2 metrics/prometheus/workqueue/metrics.go, for names, help and buckets, which
// dashboards expect. Upstream has neither workqueue_delayed nor workqueue_processing.
type Provider struct {
	queued, worked *prometheus.HistogramVec

	mu sync.Mutex
	// queues holds the newest queue of each name. A queue that was replaced is no longer reported, nor kept in memory.
	queues map[string]func() workqueue.Stats
}

// reading is a metric that is read from a queue's Stats.
type reading struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(s workqueue.Stats) float64
}

func newReading(name, help string, kind prometheus.ValueType, read func(workqueue.Stats) float64) reading {
	return reading{prometheus.NewDesc("workqueue_"+name, help, []string{"name"}, nil), kind, read}
}

var readings = []reading{
	newReading("depth", "Current depth of workqueue", prometheus.GaugeValue,
		func(s workqueue.Stats) float64 { return float64(s.Depth) }),
	newReading("adds_total", "Total number of adds handled by workqueue", prometheus.CounterValue,
		func(s workqueue.Stats) float64 { return float64(s.Adds) }),
	newReading("retries_total", "Total number of retries handled by workqueue", prometheus.CounterValue,
		func(s workqueue.Stats) float64 { return float64(s.Retries) }),
	newReading("unfinished_work_seconds",
		"How many seconds of work has been done that is in progress and has not been observed by work_duration. "+
			"Large values indicate stuck threads. One can deduce the number of stuck threads by observing the rate at "+
			"which this increases.",
		prometheus.GaugeValue,
		func(s workqueue.Stats) float64 { return s.UnfinishedWork.Seconds() }),
	newReading("longest_running_processor_seconds",
		"How many seconds has the longest running processor for workqueue been running.", prometheus.GaugeValue,
		func(s workqueue.Stats) float64 { return s.LongestRunning.Seconds() }),
	newReading("delayed", "Current number of keys that wait for their time to come", prometheus.GaugeValue,
		func(s workqueue.Stats) float64 { return float64(s.Delayed) }),
	newReading("processing", "Current number of keys that are being worked on", prometheus.GaugeValue,
		func(s workqueue.Stats) float64 { return float64(s.Processing) }),
}

// New returns a provider without queues. The caller registers it with Prometheus.
func New() *Provider {
	histogram := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "workqueue_" + name, Help: help, Buckets: prometheus.ExponentialBuckets(10e-9, 10, 12),
		}, []string{"name"})
	}
	return &Provider{
		queued: histogram("queue_duration_seconds",
			"How long in seconds an item stays in workqueue before being requested."),
		worked: histogram("work_duration_seconds", "How long in seconds processing an item from workqueue takes."),
		queues: make(map[string]func() workqueue.Stats),
	}
}

// NewQueueMetrics adds a queue. It replaces an earlier queue of the same name.
func (p *Provider) NewQueueMetrics(name string, stats func() workqueue.Stats) workqueue.Metrics {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queues[name] = stats
	return durations{queued: p.queued.WithLabelValues(name), worked: p.worked.WithLabelValues(name)}
}

// Forget removes a queue. Its two histograms stay, and no longer change.
func (p *Provider) Forget(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.queues, name)
}

// Describe sends the descriptions of all metrics.
func (p *Provider) Describe(ch chan<- *prometheus.Desc) {
	p.queued.Describe(ch)
	p.worked.Describe(ch)
	for _, r := range readings {
		ch <- r.desc
	}
}

// Collect reads all queues.
func (p *Provider) Collect(ch chan<- prometheus.Metric) {
	p.queued.Collect(ch)
	p.worked.Collect(ch)
	p.mu.Lock()
	queues := maps.Clone(p.queues)
	p.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(queues)) {
		stats := queues[name]()
		for _, r := range readings {
			ch <- prometheus.MustNewConstMetric(r.desc, r.kind, r.read(stats), name)
		}
	}
}

// durations is the [workqueue.Metrics] of one queue.
type durations struct{ queued, worked prometheus.Observer }

func (d durations) ObserveQueueDuration(took time.Duration) { d.queued.Observe(took.Seconds()) }
func (d durations) ObserveWorkDuration(took time.Duration)  { d.worked.Observe(took.Seconds()) }
