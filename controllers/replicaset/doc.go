// Package replicaset is the ReplicaSet controller: it keeps as many pods running as each ReplicaSet asks for.
//
//	ReplicaSet events ──────────────┐
//	pod events ─ whose pod is it? ──┴─▶ keys ─▶ Reconcile
//	(router.go)                                    │
//	                   client.Cluster.Seen: do the caches show what we wrote? ── no ─▶ later
//	                                               │ yes
//	                   observe.go: the set's pods; orphans adopted, strays released
//	                                               │
//	                   plan.go, ranking.go, status.go: pure; what to create, which to delete, what to report
//	                                               │
//	                   apply.go: creates in growing batches, deletes, events, status
//
// Read controller.go, which joins the parts, and then the files in that order. podtemplate.go makes a pod of the set's
// template, hold.go pauses creation after a refusal that will be repeated, and metrics.go says what is measured.
//
// What is decided is decided by pure functions of observed objects and an instant; what
// is written is written in one place.
//
// The controller behaves as kube-controller-manager's does, down to names, events and conditions. Where it differs,
// it does so in how it finds out, not in what a user sees: above all it does not count events to learn whether its
// own writes have arrived in its cache, it asks the cache. See [client.Cluster.Seen].
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/replicaset
package replicaset
