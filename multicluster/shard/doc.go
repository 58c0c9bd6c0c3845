// Package shard spreads a fleet's clusters over the replicas of a process. docs/sharding.md has the promises, the
// bounds and the load.
//
//	fleet := multicluster.Options{Owner: owner, …}      // owner, err := shard.New(mgr.GetConfig(), shard.Options{Identity: podName})
//
// Every replica has a Lease of its own in the local cluster, which makes it a member of the fleet, and renews it every
// two seconds. The period in which it holds that Lease without a break is a session. Every cluster has a Lease, too. It
// names the session of the replica that serves the cluster, and is never renewed: it is held as long as that session
// lasts. So the number of renewals depends on the number of replicas, not on that of clusters.
//
// No leader assigns clusters. For each cluster, every replica computes a weight for each live replica: a hash of the
// cluster's name and the replica's name. The cluster belongs to the replica with the greatest weight (rendezvous
// hashing).
//
//	the lease is free            the replica with the greatest weight takes it at once, the next one after Options.Patience, and so on
//	another replica holds it     the replica with the greatest weight, once its provider has announced the cluster, requests the lease by an
//	                             annotation. The holder drains the cluster and releases the lease; only then is it taken
//	its holder does not renew    the lease is taken one lease duration after the last observed renewal of the holder's session
//
// A replica measures its own deadline from the moment at which it sent its last successful renewal. The others measure
// from the moment at which they saw that renewal, which is later. All use their own monotonic clocks. Before they
// conclude that a session has expired, they read the lease from the server, because the watch may be behind:
//
//	holder    renewal sent ├──────── RenewDeadline 10 s ────────┤ tenures are lost, no write begins
//	others        renewal seen ├──────────────── LeaseDuration 15 s ───────────────┤ read the lease; take it if unchanged
//
// The five seconds between the two deadlines are for requests that are on their way. A replica releases a lease when no
// work is in flight. If work does not end, the replica writes a holder that is never renewed into the lease, so that
// the lease expires.
//
// # Reading order
//
// options.go; names.go, the leases and the sessions that they name; replicas.go, which sessions are alive; decision.go,
// what to do about a lease; owner.go, the events of leases; claim.go, how a lease is awaited; tenure.go, how it is
// taken and released; session.go, the membership; cleanup.go, what is retried and deleted.
package shard
