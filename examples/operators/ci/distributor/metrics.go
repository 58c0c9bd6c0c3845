package distributor

import "github.com/prometheus/client_golang/prometheus"

// Metrics count the imports that were answered. It is a prometheus.Collector.
//
// Concurrency: all methods may be called from any goroutine. A nil *Metrics counts nothing.
type Metrics struct{ succeeded, failed *prometheus.CounterVec }

// NewMetrics returns metrics whose counters are zero.
func NewMetrics() *Metrics {
	counter := func(name, help string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help},
			[]string{"controller", "cluster", "namespace", "name"})
	}
	return &Metrics{
		succeeded: counter("imagestream_successful_import_count", "Imports that succeeded."),
		failed:    counter("imagestream_failed_import_count", "Imports that failed."),
	}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(out chan<- *prometheus.Desc) {
	m.succeeded.Describe(out)
	m.failed.Describe(out)
}

// Collect implements prometheus.Collector.
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	m.succeeded.Collect(out)
	m.failed.Collect(out)
}

func (m *Metrics) count(k Key, succeeded bool) {
	if m == nil {
		return
	}
	which := m.failed
	if succeeded {
		which = m.succeeded
	}
	which.WithLabelValues(Name, k.Cluster, k.Namespace, k.Name()).Inc()
}
