// Package metrics shows a fleet to Prometheus. Everything is read when it is scraped.
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
// The controllers of a fleet are measured by the local manager, as all others.
package metrics
