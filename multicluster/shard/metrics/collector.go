package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/flyball-dev/flyball/multicluster/shard"
)

func newDesc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("fleet_shard_"+name, help, labels, nil)
}

var (
	member   = newDesc("member", "1 while this replica is a member of the fleet")
	replicas = newDesc("replicas", "Current number of members of the fleet, as far as this replica knows")
	leases   = newDesc("leases",
		"Current number of leases that this replica serves, waits for, or is releasing", "state")
	tenures = newDesc("tenures_total", "Total number of tenures that ended, by how they ended", "end")
	stuck   = newDesc("stuck_total",
		"Total number of tenures whose work did not end, so that the lease had to expire")
	taken            = newDesc("taken_total", "Total number of leases taken")
	handoverRequests = newDesc("handover_requests_total", "Total number of handovers requested from other replicas")
	conflicts        = newDesc("conflicts_total",
		"Total number of writes to leases for which another replica was faster")
	errors  = newDesc("errors_total", "Total number of failed requests about leases")
	expired = newDesc("expired_sessions_total", "Total number of sessions that this replica found expired")
)

// Collector reads an owner when it is scraped. Register it with the Registerer of manager/metrics.
//
// Concurrency: all methods may be called from any goroutine.
type Collector struct{ owner *shard.Owner }

// New returns the collector of an owner.
func New(owner *shard.Owner) *Collector { return &Collector{owner: owner} }

// Describe implements prometheus.Collector.
func (c *Collector) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{
		member, replicas, leases, tenures, stuck, taken, handoverRequests, conflicts, errors,
		expired,
	} {
		out <- d
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(out chan<- prometheus.Metric) {
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
	counter(errors, s.Errors)
	counter(expired, s.Expired)
}
