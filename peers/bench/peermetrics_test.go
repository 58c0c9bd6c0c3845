package bench

import (
	"github.com/prometheus/client_golang/prometheus"
	peer "k8s.io/client-go/util/workqueue"
)

// peerMetrics gives client-go's queue prometheus metrics, as component-base does.
type peerMetrics struct {
	gauges     *prometheus.GaugeVec
	counters   *prometheus.CounterVec
	histograms *prometheus.HistogramVec
}

func newPeerMetrics() *peerMetrics {
	labels := []string{"metric", "name"}
	return &peerMetrics{
		gauges:   prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "gauges"}, labels),
		counters: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "counters"}, labels),
		histograms: prometheus.NewHistogramVec(
			prometheus.HistogramOpts{Name: "histograms", Buckets: prometheus.ExponentialBuckets(10e-9, 10, 12)}, labels,
		),
	}
}

func (p *peerMetrics) NewDepthMetric(n string) peer.GaugeMetric {
	return p.gauges.WithLabelValues("depth", n)
}

func (p *peerMetrics) NewAddsMetric(n string) peer.CounterMetric {
	return p.counters.WithLabelValues("adds", n)
}

func (p *peerMetrics) NewLatencyMetric(n string) peer.HistogramMetric {
	return p.histograms.WithLabelValues("latency", n)
}

func (p *peerMetrics) NewWorkDurationMetric(n string) peer.HistogramMetric {
	return p.histograms.WithLabelValues("work", n)
}

func (p *peerMetrics) NewUnfinishedWorkSecondsMetric(n string) peer.SettableGaugeMetric {
	return p.gauges.WithLabelValues("unfinished", n)
}

func (p *peerMetrics) NewLongestRunningProcessorSecondsMetric(n string) peer.SettableGaugeMetric {
	return p.gauges.WithLabelValues("longest", n)
}

func (p *peerMetrics) NewRetriesMetric(n string) peer.CounterMetric {
	return p.counters.WithLabelValues("retries", n)
}
