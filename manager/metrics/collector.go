package metrics

import (
	"maps"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/events"
	"github.com/flyball-dev/flyball/manager/webhook"
	"github.com/flyball-dev/flyball/reconcile"
)

// collector reads the counters and gauges at each scrape, except those of queues and informers.
type collector struct{ registry *Registry }

// Describe sends nothing, because the set of metrics changes as controllers come and go. Prometheus calls such a
// collector unchecked.
func (c collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector. It calls the functions without holding a lock.
func (c collector) Collect(out chan<- prometheus.Metric) {
	r := c.registry
	r.mu.Lock()
	controllers, leaders, gauges := maps.Clone(r.controllers), maps.Clone(r.leaders), maps.Clone(r.gauges)
	client, events, loads := r.client, r.events, r.loads
	r.mu.Unlock()

	for name, stats := range controllers {
		collectController(out, name, stats())
	}
	for _, g := range gauges {
		g.gauge(out, g.value())
	}
	if client != nil {
		collectClient(out, client())
	}
	if events != nil {
		collectEvents(out, events())
	}
	if loads != nil {
		total, bad := loads()
		collectCertificate(out, total, bad)
	}
	for name, status := range leaders {
		s, value := status(), 0.0
		if s.Leading {
			value = 1
		}
		leaderStatus.gauge(out, value, name)
		leaderSlow.counter(out, float64(s.SlowRenewals), name)
	}
}

// family is a metric's name, help and labels.
type family struct{ desc *prometheus.Desc }

// gauge is what [Registry.Gauge] adds.
type gauge struct {
	family
	value func() float64
}

func newFamily(name, help string, labels ...string) family {
	return family{prometheus.NewDesc(name, help, labels, nil)}
}

func (f family) gauge(out chan<- prometheus.Metric, value float64, labels ...string) {
	out <- prometheus.MustNewConstMetric(f.desc, prometheus.GaugeValue, value, labels...)
}

func (f family) counter(out chan<- prometheus.Metric, value float64, labels ...string) {
	out <- prometheus.MustNewConstMetric(f.desc, prometheus.CounterValue, value, labels...)
}

// The metrics of controllers.
//
// Source: controller-runtime v0.25.2 pkg/internal/controller/metrics, for the names that start with controller_runtime.
var (
	reconciles = newFamily("controller_runtime_reconcile_total", "Total number of reconciliations per controller",
		"controller", "result")
	reconcileErrors = newFamily("controller_runtime_reconcile_errors_total",
		"Total number of reconciliation errors per controller", "controller")
	reconcilePanics = newFamily("controller_runtime_reconcile_panics_total",
		"Total number of reconciliation panics per controller", "controller")
	reconcileEnds = newFamily("controller_runtime_terminal_reconcile_errors_total",
		"Total number of terminal reconciliation errors per controller", "controller")
	reconcileLate = newFamily("controller_runtime_reconcile_timeouts_total",
		"Total number of reconciliation timeouts per controller", "controller")
	maxWorkers = newFamily("controller_runtime_max_concurrent_reconciles",
		"Maximum number of concurrent reconciles per controller", "controller")
	activeWorkers = newFamily("controller_runtime_active_workers", "Number of currently used workers per controller",
		"controller")
	sourceEvents = newFamily("controller_source_events_total",
		"Total number of events that sources turned into keys", "controller")
	reconcileHung = newFamily("controller_reconcile_hung_total",
		"Total number of reconciliations that took longer than HungAfter", "controller")
	reconcileStale = newFamily("controller_reconcile_stale_total",
		"Total number of reconciliations postponed because the cache was behind a write of this process", "controller")
	reconcileDrops = newFamily("controller_reconcile_dropped_total",
		"Total number of keys that were given up until they are added again", "controller")
	reconcileTimes = newFamily("controller_runtime_reconcile_time_seconds",
		"Length of time per reconciliation per controller", "controller")
	heldKeys = newFamily("controller_held_keys", "Current number of keys that wait for this process to lead",
		"controller")
)

func collectController(out chan<- prometheus.Metric, name string, s reconcile.Stats) {
	if buckets := s.ReconcileTime.Buckets(); len(buckets) > 0 {
		out <- prometheus.MustNewConstHistogram(reconcileTimes.desc, s.ReconcileTime.Count,
			s.ReconcileTime.Sum.Seconds(), buckets, name)
	}
	reconciles.counter(out, float64(s.Done), name, "success")
	reconciles.counter(out, float64(s.Errors), name, "error")
	reconciles.counter(out, float64(s.Requeues), name, "requeue_after")
	reconciles.counter(out, float64(s.Stale), name, "requeue")
	reconcileErrors.counter(out, float64(s.Errors), name)
	reconcileEnds.counter(out, float64(s.Terminal), name)
	reconcileLate.counter(out, float64(s.Timeouts), name)
	reconcilePanics.counter(out, float64(s.Panics), name)
	reconcileHung.counter(out, float64(s.Hung), name)
	reconcileStale.counter(out, float64(s.Stale), name)
	reconcileDrops.counter(out, float64(s.Dropped), name)
	sourceEvents.counter(out, float64(s.Events), name)
	maxWorkers.gauge(out, float64(s.Workers), name)
	activeWorkers.gauge(out, float64(s.InFlight), name)
	heldKeys.gauge(out, float64(s.Held), name)
}

// The metrics of the read-your-own-writes client.
var (
	clientWaits = newFamily("client_own_write_waits_total",
		"Total number of cached reads that waited for an own write to appear in the cache")
	clientWaited = newFamily("client_own_write_wait_seconds_total",
		"Total time that cached reads waited for own writes to appear in the cache")
	clientStale = newFamily("client_stale_reads_total",
		"Total number of cached reads that failed because an own write did not appear in time")
	clientPending = newFamily("client_own_writes_pending",
		"Current number of own writes that are not in the cache yet, by whether their outcome is known", "outcome")
)

func collectClient(out chan<- prometheus.Metric, s client.Stats) {
	clientWaits.counter(out, float64(s.Waits))
	clientWaited.counter(out, s.Waited.Seconds())
	clientStale.counter(out, float64(s.Stale))
	clientPending.gauge(out, float64(s.Unseen), "known")
	clientPending.gauge(out, float64(s.Unknown), "unknown")
}

// The metrics of leader election. The status is 1 while this process leads.
//
// Source: k8s.io/component-base v0.37.2 metrics/prometheus/clientgo/leaderelection.
var (
	leaderStatus = newFamily("leader_election_master_status",
		"Gauge of if the reporting system is master of the relevant lease, 0 indicates backup, 1 indicates master. "+
			"'name' is the string used to identify the lease.", "name")
	leaderSlow = newFamily("leader_election_slowpath_total",
		"Total number of slow path exercised in renewing leader leases. 'name' is the string used to identify the "+
			"lease.", "name")
)

// The metrics of the event sender.
var (
	eventsTotal  = newFamily("events_total", "Total number of recorded events by outcome", "result")
	eventsQueued = newFamily("events_queued", "Current number of events that wait to be sent")
)

func collectEvents(out chan<- prometheus.Metric, s events.Stats) {
	eventsQueued.gauge(out, float64(s.Queued))
	for result, n := range map[string]int{
		"sent": s.Sent, "filtered": s.Filtered, "rejected": s.Rejected, "givenUp": s.GivenUp,
		"overflowed": s.Overflowed,
		"invalid":    s.Invalid, "afterStop": s.Late, "undelivered": s.Undelivered,
	} {
		eventsTotal.counter(out, float64(n), result)
	}
}

// requests are the metrics of requests to the API server.
//
// Source: k8s.io/component-base v0.37.2 metrics/prometheus/restclient/metrics.go, for names, labels, help and buckets.
type requests struct {
	total               *prometheus.CounterVec
	duration, throttled *prometheus.HistogramVec
}

func newRequests() *requests {
	buckets := []float64{0.005, 0.025, 0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 15.0, 30.0, 60.0}
	return &requests{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "rest_client_requests_total",
			Help: "Number of HTTP requests, partitioned by status code, method, and host.",
		}, []string{"code", "method", "host"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "rest_client_request_duration_seconds",
			Help:    "Request latency in seconds. Broken down by verb, and host.",
			Buckets: buckets,
		}, []string{"verb", "host"}),
		throttled: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "rest_client_rate_limiter_duration_seconds",
			Help:    "Client side rate limiter latency in seconds. Broken down by host.",
			Buckets: buckets,
		}, []string{"host"}),
	}
}

// observe counts one request; code 0 means no response.
func (r *requests) observe(method, host string, code int, took time.Duration) {
	text := "<error>"
	if code != 0 {
		text = strconv.Itoa(code)
	}
	r.total.WithLabelValues(text, method, host).Inc()
	r.duration.WithLabelValues(method, host).Observe(took.Seconds())
}

// webhooks are the metrics of the server of webhooks.
//
// Source: controller-runtime v0.25.2 pkg/webhook/internal/metrics, pkg/webhook/admission/metrics and
// pkg/webhook/conversion/metrics, for names, labels, help and buckets.
type webhooks struct {
	total                    *prometheus.CounterVec
	latency                  *prometheus.HistogramVec
	inFlight                 *prometheus.GaugeVec
	panics, conversionPanics prometheus.Counter
}

func newWebhooks() *webhooks {
	return &webhooks{
		total: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "controller_runtime_webhook_requests_total",
			Help: "Total number of admission requests by HTTP status code.",
		}, []string{"webhook", "code"}),
		latency: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "controller_runtime_webhook_latency_seconds",
			Help:    "Histogram of the latency of processing admission requests",
			Buckets: prometheus.ExponentialBuckets(10e-9, 10, 12),
		}, []string{"webhook"}),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "controller_runtime_webhook_requests_in_flight",
			Help: "Current number of admission requests being served.",
		}, []string{"webhook"}),
		panics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "controller_runtime_webhook_panics_total", Help: "Total number of webhook panics",
		}),
		conversionPanics: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "controller_runtime_conversion_webhook_panics_total",
			Help: "Total number of conversion webhook panics",
		}),
	}
}

// WebhookRequest implements webhook.Metrics.
func (r *Registry) WebhookRequest(path string) func(code int, took time.Duration) {
	w := r.webhooks
	w.inFlight.WithLabelValues(path).Inc()
	return func(code int, took time.Duration) {
		w.inFlight.WithLabelValues(path).Dec()
		w.total.WithLabelValues(path, strconv.Itoa(code)).Inc()
		w.latency.WithLabelValues(path).Observe(took.Seconds())
	}
}

// WebhookPanic implements webhook.Metrics.
func (r *Registry) WebhookPanic(path string) {
	if path == webhook.ConvertPath {
		r.webhooks.conversionPanics.Inc()
		return
	}
	r.webhooks.panics.Inc()
}

// WebhookCertificates implements webhook.Metrics.
func (r *Registry) WebhookCertificates(loads func() (total, failed int)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.loads = loads
}

// The metrics of a certificate in files.
//
// Source: controller-runtime v0.25.2 pkg/certwatcher/metrics.
var (
	certificateLoads = newFamily("certwatcher_read_certificate_total", "Total number of certificate reads")
	certificateFails = newFamily("certwatcher_read_certificate_errors_total",
		"Total number of certificate read errors")
)

func collectCertificate(out chan<- prometheus.Metric, total, failed int) {
	certificateLoads.counter(out, float64(total))
	certificateFails.counter(out, float64(failed))
}
