// Package shard spreads a fleet's clusters over the replicas of a process. docs/sharding.md has the promises, the
// bounds and the load.
//
//	fleet := multicluster.Options{Owner: owner, …}      // owner, err := shard.New(mgr.GetConfig(), shard.Options{Identity: podName})
//
// Every replica has a Lease of its own in the local cluster, its membership, and renews it every two seconds. The time
// in which it holds that Lease without a break is a session. Every cluster has a Lease, too. It names the session of
// the replica that serves the cluster, and is never renewed: it is held as long as that session lives. No leader
// assigns clusters. Each cluster belongs to the live replica with the greatest hash of its own name and the cluster's
// (rendezvous hashing).
//
//	nobody holds the lease       the replica with the greatest hash takes it at once, the next one after Options.Patience, and so on
//	another replica holds it     the replica with the greatest hash, if its fleet knows the cluster, requests it by an annotation. If the
//	                             holder agrees, it drains the cluster and releases the lease; only then is the lease taken
//	its holder does not renew    the lease is taken one lease duration after the last observed change of the holder's session
//
// A replica counts from the moment it sent its last successful renewal. All others count from the moment they saw that
// renewal, on their own monotonic clocks. Before they conclude that a session has expired, they ask the server, because
// the watch may be behind:
//
//	holder    renewal sent ├──────── RenewDeadline 10 s ────────┤ tenures are lost, no write begins
//	others        renewal seen ├──────────────── LeaseDuration 15 s ───────────────┤ read the lease; take it if unchanged
//
// The five seconds between the two are for requests on their way. A lease is released when nothing is in flight. If
// work does not end, the lease is written to a holder that nobody renews, and expires.
//
// # Reading order
//
// options.go; names.go, the leases and the sessions that they name; replicas.go, which sessions are alive; decision.go,
// what to do about a lease; owner.go, the events of leases; claim.go, how a lease is awaited; tenure.go, how it is
// taken and released; session.go, the membership; cleanup.go, what is retried and deleted.
package shard
