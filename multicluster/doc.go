// Package multicluster runs controllers over many clusters that come and go.
//
//	Provider ─Join, Leave─▶ fleet ─▶ one per cluster:      config, client, informers ─events─▶ ┐
//	                          ▲                                                                ├─▶ one fair queue per controller ─▶ Reconcile
//	Owner ────────────────────┘ which of them this replica serves          the local cluster ─▶ ┘
//
// A [Provider] announces clusters, and the [Manager] connects to them. A controller is built once, with
// [ControllerManagedBy], and watches its kinds in all clusters: those that are there and those that join later. Its
// requests name their cluster. When a cluster leaves, the Manager stops its informers and frees their memory.
//
// # The life of a cluster
//
//	Waiting ─▶ Joining ─▶ Live ─▶ Draining ─▶ Gone
//	   ▲                             │
//	   └─────────────────────────────┘ not ready, or served by another replica
//
// A Waiting cluster is announced, but it is not ready yet, or another replica serves it. A Joining cluster is being
// contacted: each attempt has a deadline, and a backoff separates attempts. Once the cluster has answered it is Live,
// and controllers watch it and reconcile. In a Draining cluster no reconcile starts. Those in flight continue with a
// working client until Options.DrainTimeout, and are then cancelled. A cluster is Gone when its informers have ended
// and its memory is free.
//
// A cluster that does not answer costs the others nothing. Every cluster has a goroutine of its own, which does all the
// waiting. Nothing waits under a lock. A worker that a slow cluster occupies is replaced by another.
//
// # Names and incarnations
//
// A provider can announce a name again for another cluster: one with another identity, another endpoint, or other
// credentials. The old cluster is drained and gone before the new one joins. Each of them is an incarnation of the
// name. A request belongs to the incarnation whose event it came from. When that incarnation leaves, the request is
// dropped; it never runs against a successor of the same name. In a reconcile, [ClusterFromContext] and
// [Manager.GetCluster] return the incarnation of the request.
//
// The cluster of the local manager has the name "". Controllers watch it only when they ask for it; see
// [Builder.EngageLocal].
//
// # Fairness
//
// Each controller has one queue with a lane for every cluster. Workers take one key from each lane in turn, and within
// a lane the key of the highest priority. One cluster occupies at most Options.ClusterWorkers workers. The objects that
// were there when a cluster joined have a lower priority than those that change.
//
// # Concurrency
//
// All methods may be called from any goroutine. Those that providers, handlers and reconcilers call never wait for a
// cluster.
package multicluster
