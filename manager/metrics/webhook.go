package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/flyball-dev/flyball/manager/webhook"
)

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
