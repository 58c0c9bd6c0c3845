package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/flyball-dev/flyball/multicluster/shard"
)

func newShardDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("fleet_shard_"+name, help, labels, nil)
}

var (
	member   = newShardDesc("member", "1 while this replica is a member of the fleet")
	replicas = newShardDesc("replicas", "Current number of members of the fleet, as far as this replica knows")
	leases   = newShardDesc("leases",
		"Current number of leases that this replica serves, waits for, or is releasing", "state")
	tenures = newShardDesc("tenures_total", "Total number of tenures that ended, by how they ended", "end")
	stuck   = newShardDesc("stuck_total",
		"Total number of tenures whose work did not end, so that the lease had to expire")
	taken            = newShardDesc("taken_total", "Total number of leases taken")
	handoverRequests = newShardDesc("handover_requests_total",
		"Total number of handovers requested from other replicas")
	conflicts = newShardDesc("conflicts_total",
		"Total number of writes to leases for which another replica was faster")
	failed  = newShardDesc("errors_total", "Total number of failed requests about leases")
	expired = newShardDesc("expired_sessions_total", "Total number of sessions that this replica found expired")
)

// NewShard returns a collector that reads the owner of a fleet when it is scraped. Register it with the Registerer of
// manager/metrics.
func NewShard(owner *shard.Owner) prometheus.Collector { return &shardCollector{owner: owner} }

type shardCollector struct{ owner *shard.Owner }

// Describe implements prometheus.Collector.
func (c *shardCollector) Describe(out chan<- *prometheus.Desc) { prometheus.DescribeByCollect(c, out) }

// Collect implements prometheus.Collector.
func (c *shardCollector) Collect(out chan<- prometheus.Metric) {
	s := c.owner.Stats()
	gauge := func(d *prometheus.Desc, value int, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, float64(value), labels...)
	}
	counter := func(d *prometheus.Desc, value uint64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.CounterValue, float64(value), labels...)
	}
	is := 0
	if s.Member {
		is = 1
	}
	gauge(member, is)
	gauge(replicas, s.Replicas)
	gauge(leases, s.Serving, "serving")
	gauge(leases, s.Waiting, "waiting")
	gauge(leases, s.Releasing, "releasing")
	counter(tenures, s.Released, "released")
	counter(tenures, s.HandedOver, "handed over")
	counter(tenures, s.Lost, "lost")
	counter(stuck, s.Stuck)
	counter(taken, s.Taken)
	counter(handoverRequests, s.HandoverRequests)
	counter(conflicts, s.Conflicts)
	counter(failed, s.Errors)
	counter(expired, s.Expired)
}
