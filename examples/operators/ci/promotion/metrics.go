package promotion

import "github.com/prometheus/client_golang/prometheus"

// Metrics count the jobs that were created. It is a prometheus.Collector.
//
// Concurrency: all methods may be called from any goroutine. A nil *Metrics counts nothing.
type Metrics struct{ *prometheus.CounterVec }

// NewMetrics returns metrics whose counters are zero.
func NewMetrics() *Metrics {
	return &Metrics{prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "promotion_job_creator_prowjobs_created",
		Help: "ProwJobs that were created because images were behind their branch.",
	}, []string{"org", "repo", "branch"})}
}

func (m *Metrics) created(j Job) {
	if m != nil {
		m.WithLabelValues(j.Org, j.Repo, j.Branch).Inc()
	}
}
