// Package replicaset is the ReplicaSet controller: it keeps as many pods running as each ReplicaSet asks for.
//
//	ReplicaSet events ──────────────┐
//	pod events ─ whose pod is it? ──┴─▶ keys ─▶ Reconcile
//	(router.go)                                    │
//	                   client.Cluster.Seen: do the caches show what we wrote? ── no ─▶ later
//	                                               │ yes
//	                   observe.go: the set's pods; adopts matching orphans, releases what no longer matches
//	                                               │
//	                   plan.go, ranking.go, status.go: pure; what to create, which to delete, what to report
//	                                               │
//	                   apply.go: creates in growing batches, deletes, events, status
//
// Read controller.go, which joins the parts, and then the files in that order. podtemplate.go makes a pod of the set's
// template, and hold.go pauses creation after a refusal that will be repeated.
//
// All decisions are made by pure functions of observed objects and a point in time. All writes are in apply.go.
//
// The controller behaves like kube-controller-manager's, down to names, events and conditions. The differences are in
// how it observes, and users do not see them. Above all, it does not count events to find out whether its own writes
// have reached its cache: it asks the cache. See [client.Cluster.Seen].
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/replicaset
package replicaset
