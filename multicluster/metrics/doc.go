// Package metrics has the Prometheus collectors of a fleet. They read all values at each scrape.
//
//	fleet_clusters                              fleet, state           how many clusters are in a state
//	fleet_cluster_state                         fleet, cluster, state  1 for the state that a cluster is in
//	fleet_cluster_state_since_timestamp_seconds fleet, cluster         Unix time at which it entered its state
//	fleet_cluster_join_attempts                 fleet, cluster         failed attempts to reach it since it was last live
//	fleet_cluster_in_flight                     fleet, cluster         reconciles that use it now
//	fleet_transitions_total                     fleet, to, reason      state transitions
//	fleet_state_seconds                         fleet, state           summary: time spent in a state, added up when a cluster leaves it
//	fleet_join_failures_total                   fleet                  failed attempts, for all clusters
//	fleet_requests_dropped_total                fleet                  requests whose cluster had departed
//
// The collector of [NewShard] shows how the clusters are spread over replicas:
//
//	fleet_shard_member            1 while this replica is a member of the fleet
//	fleet_shard_replicas          the number of members, as far as this replica knows
//	fleet_shard_leases            by state: leases that this replica serves, waits for, or is releasing
//	fleet_shard_tenures_total     by end: released, handed over, lost
//	fleet_shard_stuck_total       tenures whose work did not end, so that the lease had to expire
//	fleet_shard_taken_total       leases taken
//
// It also counts requested handovers (fleet_shard_handover_requests_total), conflicts (fleet_shard_conflicts_total),
// errors (fleet_shard_errors_total) and expired sessions (fleet_shard_expired_sessions_total).
//
// The metrics of a fleet's controllers are those of the local manager's controllers.
package metrics
