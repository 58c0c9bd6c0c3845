// Package controller has the controllers of the operator.
//
//	Pods ────────┬─▶ ippool ───────────▶ IPPool (finalizer, allocations that are left, status)
//	Reservations ┤      └─ deletes ────▶ OverlappingRangeIPReservation
//	             └─▶ overlappingrange ─▶ OverlappingRangeIPReservation (status, or deleted)
//	Networks ────┬─▶ network            (reports what is wrong with a definition)
//	Nodes ───────┼─▶ nodeslicepool ────▶ NodeSlicePool (created, spec, status)
//	IPPools ─────┘
//
// Each controller has a file with its reconciler and what it watches (ippool.go, nodeslice.go, reservation.go,
// network.go). Decisions are made by functions that know nothing of clusters: poolplan.go, networkstatus.go,
// sliceplan.go. ippoolpass.go and nodeslicepass.go write the results. pods.go extracts what matters from a Pod, and
// state.go has the conditions.
//
// # Guarantees
//
// An address that a Pod needs is never released. The caches only suggest that an allocation may be an orphan; the
// server decides, and is asked last. Then the reservation is deleted and the pool is updated, but only in the versions
// that were read before. If an address is allocated in the meantime, the allocation wins, and the pass starts again.
//
// One error does not stop the rest. A range, a reference or a network status that cannot be read is reported in a
// condition and an event, and what it concerns stays as it is.
//
// A pass whose result is already stored writes nothing. There is no periodic polling: the next pass comes with the next
// event, or at a time that the last pass has set.
//
// Source: internal/controller of telekom/whereabouts v0.0.4, and its fixes up to v0.0.13, as described; README.md has
// the differences.
package controller
