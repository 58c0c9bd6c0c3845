package controllerruntime

import (
	"errors"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/flyball-dev/flyball/workqueue"
)

// refreshPeriod is the interval at which gauges are updated.
//
// Source: controller-runtime v0.25.2 pkg/controller/priorityqueue, updateUnfinishedWorkLoop.
const refreshPeriod = 500 * time.Millisecond

// families are controller-runtime's metrics of queues: the registered ones if there are any.
type families struct {
	depth, unfinished, longest *prometheus.GaugeVec
	adds, retries              *prometheus.CounterVec
	latency, work              *prometheus.HistogramVec
}

// registered returns the collector of that name in the registry, or else c.
func registered[C prometheus.Collector](c C) C {
	var there prometheus.AlreadyRegisteredError
	if err := metrics.Registry.Register(c); errors.As(err, &there) {
		if same, ok := there.ExistingCollector.(C); ok {
			return same
		}
	}
	return c
}

// newFamilies finds controller-runtime's own collectors: its registry returns them to code that tries to register the
// same ones.
//
// Source: controller-runtime v0.25.2 pkg/internal/metrics/workqueue.go, names, help texts and labels.
var newFamilies = sync.OnceValue(func() *families {
	name := func(name, help string) prometheus.Opts {
		return prometheus.Opts{Subsystem: metrics.WorkQueueSubsystem, Name: name, Help: help}
	}
	histogram := func(name, help string) *prometheus.HistogramVec {
		return registered(prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Subsystem: metrics.WorkQueueSubsystem, Name: name, Help: help,
			Buckets: prometheus.ExponentialBuckets(10e-9, 10, 12),
		}, []string{"name", "controller"}))
	}
	gauge := func(o prometheus.Opts, labels ...string) *prometheus.GaugeVec {
		return registered(
			prometheus.NewGaugeVec(prometheus.GaugeOpts(o), append([]string{"name", "controller"}, labels...)),
		)
	}
	counter := func(o prometheus.Opts) *prometheus.CounterVec {
		return registered(prometheus.NewCounterVec(prometheus.CounterOpts(o), []string{"name", "controller"}))
	}
	return &families{
		depth: gauge(name(metrics.DepthKey, "Current depth of workqueue by workqueue and priority"), "priority"),
		adds:  counter(name(metrics.AddsKey, "Total number of adds handled by workqueue")),
		retries: counter(name(metrics.RetriesKey, "Total number of items added to the workqueue with a non-zero delay "+
			"(rate-limited requeues, explicit RequeueAfter or AddAfter calls)")),
		latency: histogram(metrics.QueueLatencyKey,
			"How long in seconds an item stays in workqueue before being requested"),
		work: histogram(metrics.WorkDurationKey, "How long in seconds processing an item from workqueue takes."),
		unfinished: gauge(name(metrics.UnfinishedWorkKey, "How many seconds of work has been done that "+
			"is in progress and hasn't been observed by work_duration. Large "+
			"values indicate stuck threads. One can deduce the number of stuck "+
			"threads by observing the rate at which this increases.")),
		longest: gauge(name(metrics.LongestRunningProcessorKey, "How many seconds has the longest running "+
			"processor for workqueue been running.")),
	}
})

// gauges update controller-runtime's metrics from a queue's statistics, every refreshPeriod. Scrapes, which read them,
// are farther apart than that. All fields are nil for a queue without a name, which has no metrics.
type gauges struct {
	depth, unfinished, longest prometheus.Gauge
	adds, retries              prometheus.Counter
	latency, work              prometheus.Observer

	stats   func() workqueue.Stats
	stopped chan struct{}
	wg      sync.WaitGroup
	// added is the number of adds that were counted. Only the goroutine uses it, and stop after the goroutine has
	// ended.
	added uint64
}

// metricsOf fills in g for the queue of that name. Without a name there are no metrics.
func metricsOf(name string, g *gauges) workqueue.MetricsProvider {
	if name == "" {
		return nil
	}
	f := newFamilies()
	g.depth, g.unfinished, g.longest = f.depth.WithLabelValues(name, name, ""),
		f.unfinished.WithLabelValues(name, name), f.longest.WithLabelValues(name, name)
	g.adds, g.retries = f.adds.WithLabelValues(name, name), f.retries.WithLabelValues(name, name)
	g.latency, g.work = f.latency.WithLabelValues(name, name), f.work.WithLabelValues(name, name)
	g.stopped = make(chan struct{})
	return g
}

// NewQueueMetrics implements workqueue.MetricsProvider.
func (g *gauges) NewQueueMetrics(_ string, stats func() workqueue.Stats) workqueue.Metrics {
	g.stats = stats
	return g
}

// ObserveQueueDuration implements workqueue.Metrics.
func (g *gauges) ObserveQueueDuration(d time.Duration) { g.latency.Observe(d.Seconds()) }

// ObserveWorkDuration implements workqueue.Metrics.
func (g *gauges) ObserveWorkDuration(d time.Duration) { g.work.Observe(d.Seconds()) }

func (g *gauges) retry() {
	if g.retries != nil {
		g.retries.Inc()
	}
}

func (g *gauges) refresh() {
	now := g.stats()
	g.adds.Add(float64(now.Adds - g.added))
	g.added = now.Adds
	g.depth.Set(float64(now.Depth))
	g.unfinished.Set(now.UnfinishedWork.Seconds())
	g.longest.Set(now.LongestRunning.Seconds())
}

// start starts the refresh; stop ends it with a last refresh.
func (g *gauges) start() {
	if g.stopped == nil {
		return
	}
	g.wg.Go(func() {
		ticker := time.NewTicker(refreshPeriod)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				g.refresh()
			case <-g.stopped:
				return
			}
		}
	})
}

func (g *gauges) stop() {
	if g.stopped == nil {
		return
	}
	close(g.stopped)
	g.wg.Wait()
	g.refresh()
}
