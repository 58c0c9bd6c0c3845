// Package shard spreads a fleet's clusters over the replicas of a process. It can also spread the objects of one big
// cluster.
//
//	fleet := multicluster.Options{Owner: owner, …}      // owner, err := shard.New(mgr.GetConfig(), shard.Options{Identity: podName})
//
// # How
//
// Every replica has a Lease of its own in the local cluster, its membership, and renews it every two seconds. The time
// in which it holds that Lease without a break is a session. Every cluster has a Lease, too. It names the session of
// the replica that serves the cluster, and is never renewed: it is held as long as that session lives. The load
// therefore does not depend on the number of clusters. No leader assigns clusters. Each cluster belongs to the live
// replica with the greatest hash of its own name and the cluster's (rendezvous hashing). A new replica gets an equal
// share from each of the others, and nothing else moves.
//
//	nobody holds the lease       the replica with the greatest hash takes it at once, the next one after Options.Patience, and so on
//	another replica holds it     the replica with the greatest hash, if its fleet knows the cluster, requests it by an annotation. If the
//	                             holder agrees, it drains the cluster and releases the lease; only then is the lease taken
//	its holder does not renew    the lease is taken one lease duration after the last observed change of the holder's session
//
// A cluster moves only to a replica that has requested it. Such a replica is alive, has been a member for
// Options.Settle, and knows the cluster from its provider. It has no caches of the cluster yet: it fills them after it
// has taken the cluster, as at any join. Filling them earlier would shorten the gap, but only in moves between live
// replicas. In return, every replica that starts would hold its share's caches a second time, and every move would cost
// two lists instead of one.
//
// # What is promised
//
// Two replicas never write to a cluster at the same time, as far as a client can ensure that. A replica counts from the
// moment it sent its last successful renewal. All others count from the moment they saw that renewal, on their own
// monotonic clocks. Before they conclude that a session has expired, they ask the server, because the watch may be
// behind:
//
//	holder    renewal sent ├──────── RenewDeadline 10 s ────────┤ tenures are lost, no write begins
//	others        renewal seen ├──────────────── LeaseDuration 15 s ───────────────┤ read the lease; take it if unchanged
//
// The five seconds between the two are for requests on their way. A timer ends the tenures, even while a renewal hangs.
// [multicluster.Tenure].Check also compares the clock, so a process that was stopped (SIGSTOP) writes nothing when it
// continues. A replica that loses its membership joins again under a new session; a late answer to a renewal does not
// revive the old one.
//
// A lease is released when nothing is in flight. If work does not end, the lease is written to a holder that nobody
// renews, and expires. A lease may name a session whose process neither serves nor waits for it, because the answer to
// the write that took it was lost. That process then releases it within a retry period.
//
// When a replica fails, another one takes its clusters LeaseDuration (15 s) after the last renewal that it saw, plus
// the time of four requests: to see the renewal, read the membership, take the lease, and write. That is at most
// RetryPeriod (2 s) in all if requests are answered within half a second. The time to join the cluster comes on top.
// When a cluster is handed over, or released by a replica that stops, the gap is a few requests and the join.
//
// # Load on the local cluster
//
//	renewals     replicas ÷ RetryPeriod: three replicas send 1.5 requests a second, for any number of clusters
//	watches      one per replica, of the leases of its fleet; each renewal is one event in each
//	a move       3 writes: request, release, take. With 500 clusters, a third replica causes about 167 moves, 500 writes
//	a failure    each other replica reads the failed one's lease once; then 1 write per cluster
//	at most      Options.QPS writes per second and replica: 50, after a burst of 100
//
// The replicas' role needs get, list, watch, create, update, patch and delete on leases in the namespace.
//
// # What is not promised
//
//   - If the local cluster cannot be reached for longer than RenewDeadline, no cluster is served: no replica can know
//     its share.
//   - A packet in flight cannot be recalled. Neither can a write whose process was stopped between Check and the send.
//     It may arrive after all margins. If it is an update with a resource version, the server rejects it once the next
//     replica has written.
//   - A member that has taken a cluster keeps it even if it cannot reach the cluster.
//   - Shares are as equal as a hash makes them: with 500 clusters, each of three replicas gets about 167, give or take
//     15.
//   - If somebody deletes a Lease, its holder loses it at once, possibly in the middle of its work. Replicas that saw
//     the deletion wait for a lease duration. A replica that starts at that moment does not know of it, and does not
//     wait.
//   - As with any lease, the promise does not hold on machines whose monotonic clocks differ in speed by a third, or
//     stop during suspend.
package shard
