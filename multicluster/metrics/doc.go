// Package metrics shows a fleet to Prometheus. Everything is read when it is scraped.
//
//	fleet_clusters                              fleet, state           how many clusters are in a state
//	fleet_cluster_state                         fleet, cluster, state  1 for the state that a cluster is in
//	fleet_cluster_state_since_timestamp_seconds fleet, cluster         since when it is
//	fleet_cluster_join_attempts                 fleet, cluster         attempts to reach it that failed since it was live last
//	fleet_cluster_in_flight                     fleet, cluster         reconciles that use it now
//	fleet_transitions_total                     fleet, to, reason      changes of state
//	fleet_state_seconds                         fleet, state           summary: how long clusters were in the states they left
//	fleet_join_failures_total                   fleet                  attempts that failed, all together
//	fleet_requests_dropped_total                fleet                  requests whose cluster had departed
//
// The controllers of a fleet are measured by the local manager, as all others.
package metrics
