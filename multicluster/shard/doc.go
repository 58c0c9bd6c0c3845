// Package shard spreads a fleet's clusters over the replicas of a process, and the objects of one big cluster.
//
//	fleet := multicluster.Options{Owner: owner, …}      // owner, err := shard.New(mgr.GetConfig(), shard.Options{Identity: podName})
//
// # How
//
// Every replica has a Lease of its own in the local cluster, its membership, which it renews every two seconds. Every
// cluster has a Lease, too, which names the session of the replica that serves it: that is never renewed. It is held
// as long as the session lives, so that the load does not depend on how many clusters there are. Who serves what is
// decided by nobody: of the replicas that live, the one with the greatest hash of its name and the cluster's does
// (rendezvous hashing), so that a replica that comes gets its share from all others alike, and nothing else moves.
//
//	nobody holds the lease       the first in line takes it at once; the next one after Options.Patience, and so on
//	another replica holds it     the first in line, when its fleet knows the cluster, asks for it by an annotation. The holder, if it
//	                             agrees, lets the cluster drain, and releases the lease; only then is it taken
//	its holder is not heard of   it is taken a lease duration after its session was seen to change last
//
// A cluster moves to a replica that has asked for it, and to no other: one that is alive, has been a member for
// Options.Settle, and has been told of the cluster by its provider. It has no caches of the cluster by then: they are
// filled when the cluster is taken, as at any join. Filling them before would make every replica that starts hold its
// share's caches twice over the fleet, and every move cost two lists instead of one, to shorten a gap that only moves
// of the living have.
//
// # What is promised
//
// Two replicas never write to a cluster at one time, as far as a client can see to that. A replica counts from the
// moment it sent its last successful renewal, all others from the moment they saw it, on their own monotonic clocks;
// and they ask the server, not the watch, before they believe that nothing has changed:
//
//	holder    renewal sent ├──────── RenewDeadline 10 s ────────┤ tenures are lost, no write begins
//	others        renewal seen ├──────────────── LeaseDuration 15 s ───────────────┤ the lease is read, and taken by its version
//
// The five seconds between are for requests on their way. Tenures are lost by a timer, also while a renewal hangs,
// and [multicluster.Tenure].Check looks at the clock, so that a process that was stopped (SIGSTOP) and goes on writes
// nothing. A replica that ceases to be a member becomes one anew under another session; an answer that comes late
// does not bring the old one back.
//
// A lease is released when nothing is in flight. Where work does not end, the lease is given to nobody instead, and
// runs out. A lease that names a session but is neither served nor wanted by its process (the answer to the write
// that took it was lost) is released within a retry period.
//
// A cluster whose replica fails is taken by another one LeaseDuration (15 s) and the time of four requests after the
// renewal that was seen last: one to hear of it, one to read the membership, one to take the lease, one to write; at
// most RetryPeriod (2 s) in all, where requests are answered in half a second. To that comes the time to join the
// cluster. A cluster that is handed over, or released by a replica that stops, has a gap of a few requests and the
// join.
//
// # Load on the local cluster
//
//	renewals     replicas ÷ RetryPeriod: three replicas send 1.5 requests a second, for any number of clusters
//	watches      one per replica, of the leases of its fleet; each renewal is one event in each
//	a move       3 writes: asked for, released, taken. 500 clusters, a third replica comes: about 167 moves, 500 writes
//	a failure    a read of the dead replica's lease by each other one, and 1 write per cluster
//	at most      Options.QPS writes per second and replica: 50, after a burst of 100
//
// The identities of [Options] may see each other's leases: their role needs get, list, watch, create, update, patch
// and delete on leases in the namespace.
//
// # What is not promised
//
//   - While the local cluster cannot be reached for longer than RenewDeadline, no cluster is served: nobody can know
//     who should.
//   - A packet in flight cannot be recalled, nor a write that was checked and not yet sent when its process was
//     stopped. It may arrive later than all margins; updates with a resource version are refused when the next
//     replica has written.
//   - A replica that is a member and has taken a cluster, but cannot reach it, keeps it: whom a cluster answers does
//     not count.
//   - Shares are as equal as a hash makes them: of 500 clusters on three replicas about 167 each, give or take 15.
//   - A Lease that somebody deletes is lost at once by its holder, who may be in the middle of something. Replicas
//     that have seen it wait for a lease duration; one that starts at that moment does not know, and does not.
//   - Machines whose monotonic clocks run apart by a third, or stop while suspended, break the promise, as with any
//     lease.
package shard
