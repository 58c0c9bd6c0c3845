package ephemeralcluster

import (
	"context"
	"maps"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/conditions"
	"github.com/flyball-dev/flyball/examples/operators/ci/api"
)

// Metrics measure how many EphemeralClusters there are, and how long they took. It is a prometheus.Collector.
//
// Concurrency: all methods may be called from any goroutine. A nil *Metrics measures nothing.
type Metrics struct {
	provisioning, deprovisioning prometheus.Histogram
	count                        *prometheus.Desc

	mu sync.Mutex
	// counts are those of the last count. A kind that is not among them is no longer reported.
	counts map[kind]int
}

// kind is the set of properties that clusters are counted by.
type kind struct {
	konfluxCluster, konfluxTenant, profile, workflow string
	phase                                            api.EphemeralClusterPhase
}

var buckets = []float64{300, 600, 900, 1200, 1800, 2700, 3600, 5400, 7200, 10800}

// NewMetrics returns metrics without any measurements.
func NewMetrics() *Metrics {
	histogram := func(name, help string) prometheus.Histogram {
		return prometheus.NewHistogram(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets})
	}
	return &Metrics{
		provisioning: histogram("ephemeralcluster_provisioning_duration_seconds",
			"From the creation of an EphemeralCluster to its readiness."),
		deprovisioning: histogram("ephemeralcluster_deprovisioning_duration_seconds",
			"From the signal that a test is over to the end of its job."),
		count: prometheus.NewDesc("ephemeralcluster_count", "EphemeralClusters that there are.",
			[]string{"konflux_cluster", "konflux_tenant", "cluster_profile", "workflow", "phase"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (m *Metrics) Describe(out chan<- *prometheus.Desc) {
	out <- m.count
	m.provisioning.Describe(out)
	m.deprovisioning.Describe(out)
}

// Collect implements prometheus.Collector. All counts are of the same time.
func (m *Metrics) Collect(out chan<- prometheus.Metric) {
	m.mu.Lock()
	counts := maps.Clone(m.counts)
	m.mu.Unlock()
	for k, n := range counts {
		out <- prometheus.MustNewConstMetric(m.count, prometheus.GaugeValue, float64(n), k.konfluxCluster,
			k.konfluxTenant, k.profile, k.workflow, string(k.phase))
	}
	m.provisioning.Collect(out)
	m.deprovisioning.Collect(out)
}

// observe measures the duration of the phase that a change ends.
func (m *Metrics) observe(before, after *api.EphemeralCluster) {
	if m == nil || before.Status.Phase == after.Status.Phase {
		return
	}
	switch after.Status.Phase {
	case api.Ready:
		m.provisioning.Observe(time.Since(after.CreationTimestamp.Time).Seconds())
	case api.Deprovisioned:
		if done := conditions.Get(after.Status.Conditions, api.TestCompleted); done != nil {
			m.deprovisioning.Observe(time.Since(done.LastTransitionTime.Time).Seconds())
		}
	}
}

// counter counts the clusters at intervals, while this process leads.
type counter struct {
	hub      client.Client
	metrics  *Metrics
	interval time.Duration
}

// Name is the name in the manager.
func (c *counter) Name() string { return "ephemeral-cluster-metrics" }

// Run counts until ctx is done. After that nothing is reported.
func (c *counter) Run(ctx context.Context) error {
	tick := time.NewTicker(c.interval)
	defer tick.Stop()
	defer c.metrics.replace(nil)
	for {
		if err := c.take(ctx); err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Could not count EphemeralClusters")
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil
		}
	}
}

func (c *counter) take(ctx context.Context) error {
	var list api.EphemeralClusterList
	if err := c.hub.List(ctx, &list, client.InNamespace(Namespace), client.ReadOnly, client.Lagging); err != nil {
		return err
	}
	counts := map[kind]int{}
	for i := range list.Items {
		ec := &list.Items[i]
		counts[kind{
			ec.Annotations[api.KonfluxClusterAnnotation], ec.Annotations[api.KonfluxTenantAnnotation],
			ec.Spec.CIOperator.Test.ClusterProfile, ec.Spec.CIOperator.Test.Workflow, ec.Status.Phase,
		}]++
	}
	c.metrics.replace(counts)
	return nil
}

func (m *Metrics) replace(counts map[kind]int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts = counts
}
