// Package endpointslice keeps the EndpointSlices of every Service that has a selector: which pods are behind it, at
// which addresses and ports, in which zone, and which of them are ready, serving or on their way out. It is
// kube-controller-manager's endpointslice controller on this module's own pipeline.
//
//	Services ────────────────┐
//	Pods ─▶ services ────────┼─▶ queue of services ─▶ observe ─▶ plan ─▶ apply
//	Nodes ─▶ pods ─▶ services┤      (sources.go)     (apply.go) (plan.go) (apply.go)
//	EndpointSlices ──────────┘
//
// Read controller.go first, then sources.go, which turns events into keys. The pure half, from what is observed to
// the writes that are wanted, is plan.go and what it calls: member.go (which pods, which addresses, which ports),
// pack.go (which endpoint in which slice, with few writes), labels.go, and for the hints who should use which
// endpoint hints.go (the field trafficDistribution) and topology.go (the annotation topology-mode). The other half is
// apply.go, which reads the caches and writes. The controller's gate, [client.Cluster.Seen], puts a Service off until
// the caches show what was written for it; generations.go tells the controller's own changes of a slice from those of
// others.
//
// A Service has slices per address family and per set of ports: a named port may have another number on each pod.
// Slices are removed by the garbage collector when their Service goes.
package endpointslice
