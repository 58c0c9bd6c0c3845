package main

import (
	"testing"
	"time"

	"github.com/flyball-dev/flyball/examples/operators/internal/optest"
	"github.com/flyball-dev/flyball/examples/operators/ipam/controller"
)

var operator = optest.Operator{
	Namespace: "ipam-system", Name: controller.Name,
	Manifests: []string{"manifests", "manifests/crds", "manifests/multus"},
}

// TestScenarios plays them all, on localapi or on the cluster of FLYBALL_KUBECONFIG. They share the cluster's nodes, so
// on a real one they run one at a time.
func TestScenarios(t *testing.T) {
	var all []optest.Scenario
	for _, s := range scenarios() {
		all = append(all, optest.Scenario{Name: s.Name, Play: s.Play})
	}
	operator.Play(t, all)
}

// Scenario is something that the operator must be able to do.
type Scenario struct {
	// Name is the name of the test and of the namespace.
	Name string
	// Options changes the operator's options; nil leaves them.
	Options func(*controller.Options)
	// Idle is how long there must be no write when there is nothing to do. Zero means ten minutes.
	Idle time.Duration
	// Elect has the operator renew a lease all the time, which one scenario of them is enough for.
	Elect bool
	Does  func(*World)
}

// scenarios returns all scenarios.
func scenarios() []Scenario {
	return []Scenario{
		{Name: "pool-orphans", Idle: 6 * time.Hour, Does: poolOrphans},
		{Name: "pool-pending", Does: poolPending},
		{Name: "pool-disrupted", Does: poolDisrupted(true)},
		{
			Name: "pool-disrupted-kept", Options: func(o *controller.Options) { o.CleanupDisrupted = false },
			Does: poolDisrupted(false),
		},
		{
			Name: "pool-terminating", Options: func(o *controller.Options) { o.CleanupTerminating = true },
			Does: poolTerminating(true),
		},
		{Name: "pool-terminating-kept", Does: poolTerminating(false)},
		{Name: "pool-network-status", Does: poolNetworkStatus},
		{
			Name: "pool-network-status-off", Options: func(o *controller.Options) { o.VerifyNetworkStatus = false },
			Does: poolNetworkStatusOff,
		},
		{Name: "pool-finished-pods", Does: poolFinishedPods},
		{Name: "pool-deleted", Does: poolDeleted},
		{Name: "pool-reallocated", Does: poolReallocated},
		{Name: "pool-reservation-of-another", Does: poolReservationOfAnother},
		{Name: "pool-many-orphans", Does: poolManyOrphans},
		{Name: "pool-bad-input", Does: poolBadInput},
		{Name: "pool-overlap", Does: poolOverlap},
		{Name: "reservations", Does: reservations(false)},
		{
			Name: "reservations-terminating", Options: func(o *controller.Options) { o.CleanupTerminating = true },
			Does: reservations(true),
		},
		{Name: "slices-assigned", Does: slicesAssigned},
		{Name: "slices-full", Does: slicesFull},
		{Name: "slices-resliced", Does: slicesResliced},
		{Name: "slices-two-definitions", Does: slicesTwoDefinitions},
		{Name: "slices-in-a-list", Idle: time.Minute, Elect: true, Does: slicesInAList},
		{Name: "slices-in-use", Does: slicesInUse},
		{Name: "slices-found-again", Does: slicesFoundAgain},
		{Name: "slices-bad-input", Does: slicesBadInput},
		{Name: "slices-node-updates", Does: slicesNodeUpdates},
	}
}
