//go:generate -command controller-gen go tool -modfile=../../../../tools/go.mod controller-gen
//go:generate controller-gen rbac:roleName=ipam-operator paths=. output:rbac:dir=../manifests

// Package controller has the controllers of the operator.
//
//	Pods ────────┬─▶ ippool ───────────▶ IPPool (finalizer, remaining allocations, status)
//	Reservations ┤      └─ deletes ────▶ OverlappingRangeIPReservation
//	             └─▶ overlappingrange ─▶ OverlappingRangeIPReservation (status, or deleted)
//	Networks ────┬─▶ network            (reports what is wrong with a definition)
//	Nodes ───────┼─▶ nodeslicepool ────▶ NodeSlicePool (created, spec, status)
//	IPPools ─────┘
//
// Each controller has a file with its reconciler and its watches (ippool.go, nodeslice.go, reservation.go, network.go).
// Pure functions make the decisions: poolplan.go, networkstatus.go, sliceplan.go. ippoolpass.go and nodeslicepass.go
// write the results. pods.go extracts what matters from a Pod, and state.go has the conditions.
//
// # Guarantees
//
// The operator never releases an address that a Pod needs. The caches only suggest that an allocation may be an orphan;
// before it releases anything, a pass asks the server. It then deletes the reservation and updates the pool, each only
// at the version that it read. If an address is allocated in the meantime, the allocation wins, and the pass starts
// again.
//
// One error does not stop the rest. If a range, a reference or a network status cannot be parsed, the operator reports
// that in a condition and an event, and leaves the allocation or slice as it is.
//
// A pass writes nothing if its result is already stored. There is no polling: the next event starts the next pass, or a
// time that the last pass has set.
//
// Source: internal/controller of telekom/whereabouts v0.0.4, with its fixes up to v0.0.13; README.md has the
// differences.
package controller
