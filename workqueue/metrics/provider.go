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
// Source: names, meanings and buckets are those of kubernetes v1.37.1,
// component-base/metrics/prometheus/workqueue/metrics.go, which dashboards expect.
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
	newReading("depth", "Current depth of the work queue.", prometheus.GaugeValue,
		func(s workqueue.Stats) float64 { return float64(s.Depth) }),
	newReading("adds_total", "Adds handled by the work queue.", prometheus.CounterValue,
		func(s workqueue.Stats) float64 { return float64(s.Adds) }),
	newReading("retries_total", "Retries handled by the work queue.", prometheus.CounterValue,
		func(s workqueue.Stats) float64 { return float64(s.Retries) }),
	newReading("unfinished_work_seconds",
		"Seconds of work in progress that work_duration has not seen. Large values mean stuck workers.",
		prometheus.GaugeValue,
		func(s workqueue.Stats) float64 { return s.UnfinishedWork.Seconds() }),
	newReading("longest_running_processor_seconds", "Seconds the longest running worker has been at its key.",
		prometheus.GaugeValue,
		func(s workqueue.Stats) float64 { return s.LongestRunning.Seconds() }),
}

// New returns a provider without queues. The caller registers it with Prometheus.
func New() *Provider {
	histogram := func(name, help string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "workqueue_" + name, Help: help, Buckets: prometheus.ExponentialBuckets(10e-9, 10, 12),
		}, []string{"name"})
	}
	return &Provider{
		queued: histogram("queue_duration_seconds", "Seconds a key stays in the work queue before it is handed out."),
		worked: histogram("work_duration_seconds", "Seconds the work on a key takes."),
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
