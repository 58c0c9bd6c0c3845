// Package multicluster runs controllers over many clusters that come and go.
//
//	Provider ─Join, Leave─▶ fleet ─▶ one per cluster:      config, client, informers ─events─▶ ┐
//	                          ▲                                                                ├─▶ one fair queue per controller ─▶ Reconcile
//	Owner ────────────────────┘ which of them this replica serves          the local cluster ─▶ ┘
//
// A [Provider] announces clusters. The [Manager] connects them, lets every controller watch them, and takes them
// apart again when they leave. A controller is built once, by [ControllerManagedBy]; what it watches, it watches in
// every cluster that is there and in every one that comes, and its requests name the cluster they are about.
//
// # The life of a cluster
//
//	Waiting ─▶ Joining ─▶ Live ─▶ Draining ─▶ Gone
//	   ▲                             │
//	   └─────────────────────────────┘ not ready, or served by another replica
//
// Waiting: the cluster is announced, but is not ready, as its provider says, or another replica serves it. Joining:
// it is being reached; an attempt has a deadline, the next one comes after a backoff. Live: it answered; controllers
// watch it, and reconcile. Draining: nothing new is begun; what is in flight goes on with a client that works, until
// Options.DrainTimeout, when it is cancelled. Gone: its informers have ended and its memory is free.
//
// A cluster that never answers, or stops answering, costs the others nothing: each has a goroutine of its own for all
// that waits, nothing waits under a lock, and a worker that is kept by a slow cluster is replaced.
//
// # Names and incarnations
//
// A name can be announced anew for another cluster: another identity, another endpoint, other credentials. The old
// one is then drained, and is gone before the new one joins. A request belongs to the incarnation whose event it came
// from: it is dropped when that departs, and never run against a successor of the same name. In a reconcile,
// [ClusterFromContext] and [Manager.GetCluster] give the incarnation that the request is about.
//
// The cluster of the local manager has the name "". Controllers watch it when they ask for it; see
// [Builder.EngageLocal].
//
// # Fairness
//
// Each controller has one queue, in which every cluster has its lane: workers take one key of each cluster in turn,
// within a cluster by priority. One cluster keeps at most Options.ClusterWorkers of them. What was there when a
// cluster joined comes after what changes.
//
// # Concurrency
//
// All methods may be called from any goroutine. None that is called by a provider, a handler or a reconciler waits
// for a cluster.
package multicluster
