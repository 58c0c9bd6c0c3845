package suite

import (
	"github.com/flyball-dev/flyball/examples/operators/ipam/controller"
)

// Scenario is something that the operator must be able to do.
type Scenario struct {
	// Name is the name of the test and of the namespace.
	Name string
	// Options changes the operator's options; nil leaves them.
	Options func(*controller.Options)
	Play    func(*World)
}

// Scenarios returns all scenarios.
func Scenarios() []Scenario {
	return []Scenario{
		{Name: "pool-orphans", Play: poolOrphans},
		{Name: "pool-pending", Play: poolPending},
		{Name: "pool-disrupted", Play: poolDisrupted(true)},
		{
			Name: "pool-disrupted-kept", Options: func(o *controller.Options) { o.CleanupDisrupted = false },
			Play: poolDisrupted(false),
		},
		{
			Name: "pool-terminating", Options: func(o *controller.Options) { o.CleanupTerminating = true },
			Play: poolTerminating(true),
		},
		{Name: "pool-terminating-kept", Play: poolTerminating(false)},
		{Name: "pool-network-status", Play: poolNetworkStatus},
		{
			Name: "pool-network-status-off", Options: func(o *controller.Options) { o.VerifyNetworkStatus = false },
			Play: poolNetworkStatusOff,
		},
		{Name: "pool-finished-pods", Play: poolFinishedPods},
		{Name: "pool-deleted", Play: poolDeleted},
		{Name: "pool-reallocated", Play: poolReallocated},
		{Name: "pool-reservation-of-another", Play: poolReservationOfAnother},
		{Name: "pool-many-orphans", Play: poolManyOrphans},
		{Name: "pool-bad-input", Play: poolBadInput},
		{Name: "pool-overlap", Play: poolOverlap},
		{Name: "reservations", Play: reservations(false)},
		{
			Name: "reservations-terminating", Options: func(o *controller.Options) { o.CleanupTerminating = true },
			Play: reservations(true),
		},
		{Name: "slices-assigned", Play: slicesAssigned},
		{Name: "slices-full", Play: slicesFull},
		{Name: "slices-resliced", Play: slicesResliced},
		{Name: "slices-two-definitions", Play: slicesTwoDefinitions},
		{Name: "slices-in-a-list", Play: slicesInAList},
		{Name: "slices-in-use", Play: slicesInUse},
		{Name: "slices-found-again", Play: slicesFoundAgain},
		{Name: "slices-bad-input", Play: slicesBadInput},
		{Name: "slices-node-updates", Play: slicesNodeUpdates},
	}
}
