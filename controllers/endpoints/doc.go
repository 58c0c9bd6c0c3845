// Package endpoints keeps the Endpoints of every Service that has a selector: which pods are behind it, at which
// addresses and ports, and which of them are ready. It is kube-controller-manager's endpoint controller on this
// module's own pipeline.
//
//	Services ──────────┐
//	Pods ─▶ services ──┼─▶ queue of services ─▶ observe ─▶ plan ─▶ apply
//	Endpoints ─────────┘     (sources.go)      (apply.go) (plan.go) (apply.go)
//
// Read controller.go first, then sources.go, which turns events into keys. The pure half, from what is observed to
// the one write that is wanted, is plan.go and what it calls: member.go (which pods, which address, which ports),
// subset.go (the canonical layout), capacity.go (at most a thousand addresses). The other half is apply.go, which
// reads the caches and writes. The controller's gate, [client.Cluster.Seen], puts a Service off until the caches show
// what was written for it. What holds for EndpointSlices too is in controllers/internal/serving.
//
// The Endpoints API cannot say everything: one address family, no topology, a thousand addresses. EndpointSlices
// replace it; this controller exists for those who still read Endpoints.
package endpoints
