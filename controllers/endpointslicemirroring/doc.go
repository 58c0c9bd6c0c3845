// Package endpointslicemirroring is kube-controller-manager's endpointslice-mirroring controller on this module's
// pipeline. It copies Endpoints that somebody writes by hand, for a Service without a selector, into EndpointSlices:
// kube-proxy and most other clients read only those.
//
//	Endpoints ──────┐
//	Services ───────┼─▶ queue of Endpoints ─▶ observe ─▶ plan ─▶ apply
//	EndpointSlices ─┘     (sources.go)       (apply.go) (plan.go) (apply.go)
//
// Read the files in this order:
//
//	controller.go    the options, and what the controller watches
//	sources.go       which Endpoints an event concerns, and which are mirrored
//	apply.go         Reconcile: reads the caches, makes a plan, and writes
//	plan.go          a pure function from what is observed to the writes that are needed
//	slice.go         what a slice contains of its Endpoints
//
// Finding, comparing, writing and watching slices is in controllers/internal/sliceset, which the controller of
// EndpointSlices uses, too; the layout of the subsets is [endpoints.RepackSubsets]. kube-controller-manager tracks the
// versions of the slices that it wrote, and fails a sync that would work from an older cache. Here
// [client.Cluster.Seen], which knows all own writes, postpones it.
//
// Endpoints become one slice for each set of ports and each address family. A slice holds no more than a thousand
// endpoints, so addresses beyond that are left out, which an event reports.
package endpointslicemirroring
