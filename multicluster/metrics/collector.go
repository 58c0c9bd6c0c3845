package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/flyball-dev/flyball/multicluster"
	"github.com/flyball-dev/flyball/multicluster/shard"
)

// family is a metric's name, help and labels.
type family struct{ desc *prometheus.Desc }

func newFamily(name, help string, labels ...string) family {
	return family{prometheus.NewDesc(name, help, append([]string{"fleet"}, labels...), nil)}
}

var (
	clusters = newFamily("fleet_clusters", "Current number of clusters in a state", "state")
	state    = newFamily("fleet_cluster_state", "1 for the state that a cluster is in", "cluster", "state")
	since    = newFamily("fleet_cluster_state_since_timestamp_seconds",
		"Unix time at which a cluster entered its state", "cluster")
	attempts = newFamily("fleet_cluster_join_attempts",
		"Failed attempts to reach a cluster since it was last live", "cluster")
	inFlight    = newFamily("fleet_cluster_in_flight", "Current number of reconciles that use a cluster", "cluster")
	transitions = newFamily("fleet_transitions_total",
		"Total number of state transitions, by new state and reason", "to", "reason")
	spent = newFamily("fleet_state_seconds",
		"Time that clusters spent in a state, added up when they leave it", "state")
	failures = newFamily("fleet_join_failures_total", "Total number of failed attempts to reach a cluster")
	dropped  = newFamily("fleet_requests_dropped_total",
		"Total number of requests that were dropped because their cluster had departed")
)

// New returns a collector that reads a fleet when it is scraped. Register it with the Registerer of manager/metrics.
func New(fleet *multicluster.Manager) prometheus.Collector { return &collector{fleet: fleet} }

type collector struct{ fleet *multicluster.Manager }

// Describe sends nothing, because the set of metrics changes with the clusters. In the terms of Prometheus, this is an
// unchecked collector.
func (c *collector) Describe(chan<- *prometheus.Desc) {}

// Collect implements prometheus.Collector.
func (c *collector) Collect(out chan<- prometheus.Metric) {
	send := func(f family, kind prometheus.ValueType, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(f.desc, kind, value, append([]string{c.fleet.Name()}, labels...)...)
	}
	s := c.fleet.Stats()
	for _, state := range multicluster.States {
		send(clusters, prometheus.GaugeValue, float64(s.Clusters[state]), state.String())
		if left := s.Left[state]; left > 0 {
			out <- prometheus.MustNewConstSummary(spent.desc, left, s.Spent[state].Seconds(), nil, c.fleet.Name(),
				state.String())
		}
	}
	for t, n := range s.Transitions {
		send(transitions, prometheus.CounterValue, float64(n), t.To.String(), t.Reason)
	}
	send(failures, prometheus.CounterValue, float64(s.Attempts))
	send(dropped, prometheus.CounterValue, float64(s.Dropped))
	for _, cluster := range c.fleet.Clusters() {
		send(state, prometheus.GaugeValue, 1, cluster.Name, cluster.State.String())
		send(since, prometheus.GaugeValue, float64(cluster.Since.UnixMilli())/1000, cluster.Name)
		send(attempts, prometheus.GaugeValue, float64(cluster.Attempts), cluster.Name)
		send(inFlight, prometheus.GaugeValue, float64(cluster.InFlight), cluster.Name)
	}
}

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
	isMember := 0
	if s.Member {
		isMember = 1
	}
	gauge(member, isMember)
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
