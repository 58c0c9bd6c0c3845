// Package controller has the controllers of the operator.
//
//	Pods ────────┬─▶ ippool ───────────▶ IPPool (finalizer, allocations that are left, status)
//	Reservations ┤      └─ deletes ────▶ OverlappingRangeIPReservation
//	             └─▶ overlappingrange ─▶ OverlappingRangeIPReservation (status, or deleted)
//	Networks ────┬─▶ network            (says what is wrong with a definition)
//	Nodes ───────┼─▶ nodeslicepool ────▶ NodeSlicePool (created, spec, status)
//	IPPools ─────┘
//
// Each has a file with its reconciler and what it watches (ippool.go, nodeslice.go, reservation.go, network.go). What is decided is
// in functions that know nothing of clusters: poolplan.go, networkstatus.go, sliceplan.go; ippoolpass.go and nodeslicepass.go write it.
// pods.go says what of a Pod matters, state.go the conditions.
//
// # What is promised
//
// An address that a Pod needs is never taken back. The caches say what may be an orphan; that it is one, only the server says, which is
// asked last. Then the reservation is deleted and the pool is written only in the versions that were read before: whatever allocates in
// the meantime wins, and the pass begins anew.
//
// Nothing that is wrong stops the rest: a range, a reference or a network status that cannot be read is said in a condition and an event,
// and what it would concern stays as it is.
//
// A pass whose outcome is what is stored writes nothing. No pass is there to look whether something has changed: the next one comes
// with the next event, or when a time has come that the pass before has named.
//
// Source: internal/controller of telekom/whereabouts v0.0.4, and its fixes up to v0.0.13, as described; README.md has the differences.
package controller
