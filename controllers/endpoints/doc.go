// Package endpoints keeps the Endpoints of every Service that has a selector: which pods are behind it, at which
// addresses and ports, and which of them are ready. It is kube-controller-manager's endpoint controller on this
// module's own pipeline.
//
//	Services ──────────┐
//	Pods ─▶ services ──┼─▶ queue of services ─▶ observe ─▶ plan ─▶ apply
//	Endpoints ─────────┘     (sources.go)      (apply.go) (plan.go) (apply.go)
//
// Read controller.go first, then sources.go, which turns events into keys. plan.go is pure: it computes the one write
// that is needed from what was observed. It uses member.go (which pods, which address, which ports), subset.go (the
// canonical layout) and capacity.go (at most a thousand addresses). apply.go reads the caches and writes. The gate in
// controller.go, [client.Cluster.Seen], postpones the sync of a Service until the caches show what was written for it.
// What EndpointSlices need, too, is in controllers/internal/serving.
//
// The Endpoints API cannot say everything: one address family, no topology, a thousand addresses. EndpointSlices
// replace it; this controller exists for clients that still read Endpoints.
package endpoints
