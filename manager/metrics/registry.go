package metrics

import (
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/events"
	"github.com/flyball-dev/flyball/informer"
	informermetrics "github.com/flyball-dev/flyball/informer/metrics"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/leader"
	"github.com/flyball-dev/flyball/manager/webhook"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/workqueue"
	queuemetrics "github.com/flyball-dev/flyball/workqueue/metrics"
)

// Registry implements manager.Metrics with Prometheus.
//
// Concurrency: all methods may be called from any goroutine.
type Registry struct {
	prometheus *prometheus.Registry
	handler    http.Handler
	queues     *queuemetrics.Provider
	requests   *requests
	webhooks   *webhooks

	mu sync.Mutex // guards the functions below, which a scrape calls
	// Invariant: there is at most one function for each name. A later one replaces an earlier one, as a rebuilt
	// controller replaces the one that ended.
	controllers map[string]func() reconcile.Stats
	leaders     map[string]func() leader.Status
	gauges      map[string]gauge
	informers   func() map[string]informer.Stats
	client      func() client.Stats
	events      func() events.Stats
	// loads reports how often the certificate of webhooks was loaded; nil if it is not in files.
	loads func() (total, failed int)
}

var (
	_ manager.Metrics = (*Registry)(nil)
	_ webhook.Metrics = (*Registry)(nil)
)

// New returns an empty registry with the metrics of the Go runtime and of the process.
func New() *Registry {
	r := &Registry{
		prometheus:  prometheus.NewRegistry(),
		queues:      queuemetrics.New(),
		requests:    newRequests(),
		webhooks:    newWebhooks(),
		controllers: map[string]func() reconcile.Stats{},
		leaders:     map[string]func() leader.Status{},
		gauges:      map[string]gauge{},
	}
	r.handler = promhttp.HandlerFor(r.prometheus, promhttp.HandlerOpts{Registry: r.prometheus})
	r.prometheus.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		r.queues, informermetrics.NewCollector(r.informerStats),
		r.requests.total, r.requests.duration, r.requests.throttled,
		r.webhooks.total, r.webhooks.latency, r.webhooks.inFlight, r.webhooks.panics, r.webhooks.conversionPanics,
		collector{r},
	)
	return r
}

// ServeHTTP serves the metrics in the Prometheus format.
func (r *Registry) ServeHTTP(w http.ResponseWriter, req *http.Request) { r.handler.ServeHTTP(w, req) }

// Register adds metrics of the program, and MustRegister panics where Register fails.
func (r *Registry) Register(c prometheus.Collector) error { return r.prometheus.Register(c) }

// MustRegister is described at [Registry.Register].
func (r *Registry) MustRegister(cs ...prometheus.Collector) { r.prometheus.MustRegister(cs...) }

// Unregister removes metrics of the program. It reports whether they were there.
func (r *Registry) Unregister(c prometheus.Collector) bool { return r.prometheus.Unregister(c) }

// NewQueueMetrics implements [workqueue.MetricsProvider].
func (r *Registry) NewQueueMetrics(name string, stats func() workqueue.Stats) workqueue.Metrics {
	return r.queues.NewQueueMetrics(name, stats)
}

// Informers implements manager.Metrics.
func (r *Registry) Informers(stats func() map[string]informer.Stats) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.informers = stats
}

// informerStats returns the statistics of all informers; none before Informers was called.
func (r *Registry) informerStats() map[string]informer.Stats {
	r.mu.Lock()
	stats := r.informers
	r.mu.Unlock()
	if stats == nil {
		return nil
	}
	return stats()
}

// Controller implements manager.Metrics.
func (r *Registry) Controller(name string, stats func() reconcile.Stats) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.controllers[name] = stats
}

// Forget implements manager.Metrics. It removes the counters and gauges of the controller and of its queue. Their
// histograms stay, and no longer change.
func (r *Registry) Forget(name string) {
	r.queues.Forget(name)
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.controllers, name)
}

// Client implements manager.Metrics.
func (r *Registry) Client(stats func() client.Stats) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.client = stats
}

// Events implements manager.Metrics.
func (r *Registry) Events(stats func() events.Stats) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = stats
}

// Leader implements manager.Metrics.
func (r *Registry) Leader(lease string, status func() leader.Status) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.leaders[lease] = status
}

// Gauge adds a gauge without labels. Each scrape calls value.
func (r *Registry) Gauge(name, help string, value func() float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.gauges[name] = gauge{newFamily(name, help), value}
}

// Request implements manager.Metrics.
func (r *Registry) Request(method, host string, code int, took time.Duration) {
	r.requests.observe(method, host, code, took)
}

// Throttled implements manager.Metrics.
func (r *Registry) Throttled(host string, waited time.Duration) {
	r.requests.throttled.WithLabelValues(host).Observe(waited.Seconds())
}
