// Package metrics shows to Prometheus how clusters are spread over replicas.
//
//	registry := metrics.New()                                        // of manager/metrics
//	registry.Registerer().MustRegister(shardmetrics.New(owner))
//
//	fleet_shard_member            1 while this replica is one of those that share the fleet
//	fleet_shard_replicas          how many there are, as far as this one knows
//	fleet_shard_leases            by state: those that this replica serves, waits for, or has not given back yet
//	fleet_shard_tenures_total     by how they ended: released, handed over, lost
//	fleet_shard_stuck_total       those after which work went on, so that the lease had to run out
//	fleet_shard_taken_total       leases taken; asked_total, conflicts_total, errors_total and dead_total are what went with it
package metrics
