package metrics

import (
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

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
