// Package garbagecollector deletes objects whose owners are gone, and applies the propagation policy of a delete to
// dependents. It is kube-controller-manager's garbage collector on this module's own pipeline.
//
//	discovery ─▶ monitors (one metadata informer per resource) ─▶ graph ─┬▶ delete queue ─▶ observe, plan, apply
//	             (discovery.go, monitors.go)                (graph.go)  └▶ orphan queue ─▶ patch dependents
//
// An object names its owners by UID in metadata.ownerReferences. The graph has the opposite direction: a node for each
// object, with its dependents. An owner that is named, but that no watch has shown, has a virtual node. The node
// becomes a real one when a watch shows the object. If the API server answers that the object does not exist, the node
// is removed as if the object had been deleted (a virtual delete), and a cache of absent owners saves further requests.
//
// Read collector.go first, then the files in the diagram, and node.go, which defines the nodes of the graph. attempt.go
// processes the keys of both queues: it reads through remote.go, decides in plan.go, which is pure, and sends what
// patch.go builds.
//
// An object is identified by its UID, group and kind. It is the same object in all versions of its kind, so a reference
// may name a version that is not served any more. When the version of a resource changes, another monitor takes over,
// and objects that it does not find are verified. If no version of an owner's kind is served, the collector cannot know
// whether the owner exists. The dependents then stay, and readyz and a metric report them (unresolved.go).
//
// The graph decides only what is worth checking. Before the collector deletes an object, it reads the object and its
// owners from the API server, and the delete request names the UID and the resource version that it has read.
//
// # What a delete means for dependents
//
// Background, the default: the API server deletes the owner at once, and the collector deletes dependents that have no
// owner left. Foreground: the API server sets the finalizer foregroundDeletion on the owner and keeps it. The collector
// deletes the dependents, and removes the finalizer when none is left that blocks the owner (blockOwnerDeletion).
// Orphan: likewise with the finalizer orphan, but the dependents lose the reference and stay.
//
// An owner is either in the dependent's own namespace or cluster-scoped. An owner in another namespace counts as
// absent, and an event reports the reference.
package garbagecollector
