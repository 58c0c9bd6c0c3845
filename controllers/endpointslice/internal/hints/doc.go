// Package hints decides who should use which endpoint, for a Service that asks for that.
//
//	traffic.go    the field trafficDistribution: an endpoint is for clients in its own zone or on its own node
//	topology.go   the annotation topology-mode: each zone gets a share of the endpoints
//	nodes.go      what topology.go needs to know about nodes
//
// [Apply] and [Spread] get the slices of one address family in two lists. Those in written are about to be written: the
// caller owns them, and their hints are set in place. Those in kept belong to the cache. Both functions return copies
// of the kept slices whose hints have to change, which the caller then writes too, and the kept slices that stay as
// they are.
package hints
