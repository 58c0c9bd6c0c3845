// Package multicluster runs controllers over many clusters that come and go.
//
//	Provider ─Join, Leave─▶ fleet ─▶ one per cluster:      config, client, informers ─events─▶ ┐
//	                          ▲                                                                ├─▶ one fair queue per controller ─▶ Reconcile
//	Owner ────────────────────┘ which of them this replica serves          the local cluster ─▶ ┘
//
// A [Provider] announces clusters. The [Manager] connects to them, lets every controller watch them, and takes them
// apart when they leave. [ControllerManagedBy] builds a controller once. The controller watches its kinds in every
// cluster that is there and in every one that joins later. Its requests name their cluster.
//
// # The life of a cluster
//
//	Waiting ─▶ Joining ─▶ Live ─▶ Draining ─▶ Gone
//	   ▲                             │
//	   └─────────────────────────────┘ not ready, or served by another replica
//
// Waiting: the cluster is announced, but its provider says that it is not ready, or another replica serves it. Joining:
// the fleet tries to reach it; each attempt has a deadline, and a backoff separates attempts. Live: it answered;
// controllers watch it and reconcile. Draining: no reconcile starts. Those in flight go on with a working client, and
// are cancelled after Options.DrainTimeout. Gone: its informers have ended and its memory is free.
//
// A cluster that never answers, or stops answering, costs the others nothing: each has a goroutine of its own that does
// all the waiting, nothing waits under a lock, and a worker that a slow cluster occupies is replaced.
//
// # Names and incarnations
//
// A name can be announced anew for another cluster: another identity, another endpoint, or other credentials. The old
// cluster is drained and gone before the new one joins. A request belongs to the incarnation whose event it came from.
// It is dropped when that departs, and never runs against a successor of the same name. In a reconcile,
// [ClusterFromContext] and [Manager.GetCluster] return the incarnation of the request.
//
// The cluster of the local manager has the name "". Controllers watch it when they ask for it; see
// [Builder.EngageLocal].
//
// # Fairness
//
// Each controller has one queue with a lane for every cluster. Workers take one key from each lane in turn; within a
// lane, priority decides. One cluster occupies at most Options.ClusterWorkers workers. The objects that were there when
// a cluster joined come after those that change.
//
// # Concurrency
//
// All methods may be called from any goroutine. The methods that providers, handlers and reconcilers call never wait
// for a cluster.
package multicluster
