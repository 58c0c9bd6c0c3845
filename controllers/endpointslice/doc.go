// Package endpointslice is kube-controller-manager's endpointslice controller on this module's pipeline. It keeps the
// EndpointSlices of every Service that has a selector. They list the pods behind the Service: at which addresses and
// ports, in which zone, and which of them are ready, serving or terminating.
//
//	Services ────────────────┐
//	Pods ─▶ services ────────┼─▶ queue of services ─▶ observe ─▶ plan ─▶ apply
//	Nodes ─▶ pods ─▶ services┤      (sources.go)     (apply.go) (plan.go) (apply.go)
//	EndpointSlices ──────────┘
//
// Read the files in this order:
//
//	controller.go    the options, and what the controller watches
//	sources.go       which Services an event concerns
//	apply.go         Reconcile: reads the caches, makes a plan, and writes
//	plan.go          a pure function from what is observed to the writes that are needed
//	member.go        which pods are published, at which addresses and ports
//	pack.go          which endpoint goes into which slice, with few writes
//	labels.go        the labels of the slices
//
// What every controller of slices needs is in controllers/internal/sliceset: it finds, writes and watches them. Its
// gate, [client.Cluster.Seen], postpones the sync of a Service until the caches have what was written for it. A first
// reading may skip the package internal/hints, which decides who should use which endpoint.
//
// A Service has slices for each address family and for each set of ports: a named port may have another number on each
// pod. The garbage collector deletes the slices of a Service that is deleted.
package endpointslice
