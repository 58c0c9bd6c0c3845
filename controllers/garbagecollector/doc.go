// Package garbagecollector deletes objects whose owners are gone, and carries out what a delete asks for its
// dependents: kube-controller-manager's garbage collector on this module's own pipeline.
//
//	discovery ─▶ monitors (one metadata informer per resource) ─▶ graph ─┬▶ delete queue ─▶ observe, plan, apply
//	             (discovery.go, monitors.go)                (graph.go)  └▶ orphan queue ─▶ patch dependents
//
// An object names its owners by UID in metadata.ownerReferences. The graph has those references the other way round:
// a node per object, with its dependents. An owner that is named but was never seen has a virtual node, until either
// the object is seen or the API server says that there is none.
//
// Read collector.go first, then the files of the drawing and node.go, what the graph is made of. attempt.go is a run of
// the delete queue: it observes through remote.go, decides in plan.go, which is pure, and sends what patch.go builds.
//
// The graph only suggests. Before anything is deleted, the object and each of its owners are read from the API
// server, and the delete is bound to the UID and the resource version that were read.
//
// # What a delete means for dependents
//
// Background, the default: the owner goes at once, and its dependents when the collector finds that they have no
// owner left. Foreground: the API server sets the finalizer foregroundDeletion on the owner and keeps it; the
// dependents are deleted, and when none is left that blocks the owner (blockOwnerDeletion), the finalizer is taken
// away. Orphan: likewise with the finalizer orphan, but the dependents lose the reference and stay.
//
// An owner is looked for in the dependent's own namespace, or in the cluster. One in another namespace does not
// count, as if it were not there; an event says so.
package garbagecollector
