package metrics

import (
	"maps"

	"github.com/prometheus/client_golang/prometheus"
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
