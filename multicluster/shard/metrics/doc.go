// Package metrics exports to Prometheus how clusters are spread over replicas.
//
//	registry := metrics.New()                                        // of manager/metrics
//	registry.Registerer().MustRegister(shardmetrics.New(owner))
//
//	fleet_shard_member            1 while this replica is a member of the fleet
//	fleet_shard_replicas          the number of members, as far as this replica knows
//	fleet_shard_leases            by state: leases that this replica serves, waits for, or is releasing
//	fleet_shard_tenures_total     by end: released, handed over, lost
//	fleet_shard_stuck_total       tenures whose work did not end, so that the lease had to expire
//	fleet_shard_taken_total       leases taken; see also handover_requests_total, conflicts_total, errors_total and
//	                              expired_sessions_total
package metrics
