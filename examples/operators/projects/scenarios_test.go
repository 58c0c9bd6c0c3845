package main

import (
	"testing"
	"time"

	"github.com/flyball-dev/flyball/examples/operators/internal/optest"
	"github.com/flyball-dev/flyball/examples/operators/projects/controller"
	"github.com/flyball-dev/flyball/multicluster/providers"
)

var operator = optest.Operator{
	Namespace: "project-system", Name: controller.Name,
	Manifests: []string{"manifests", "manifests/crds"},
}

// TestScenarios plays them all, on localapi or on the cluster of FLYBALL_KUBECONFIG. The host provides the control
// planes in both cases. Projects are cluster-scoped, so on a real cluster the scenarios run one at a time.
func TestScenarios(t *testing.T) {
	var all []optest.Scenario
	for _, s := range scenarios() {
		all = append(all, optest.Scenario{Name: s.Name, Alone: s.Alone, Play: s.Play})
	}
	operator.Play(t, all)
}

// Scenario is something that the operator must be able to do.
type Scenario struct {
	// Name is the name of the test.
	Name string
	// Options changes the operator's options; nil leaves them.
	Options func(*controller.Options)
	// Alone means that the scenario counts the goroutines of the process.
	Alone bool
	// Elect has the operator renew a lease all the time, which one scenario of them is enough for.
	Elect bool
	Does  func(*World)
}

// scenarios returns all scenarios.
func scenarios() []Scenario {
	long := func(o *controller.Options) { o.PurgeTimeout, o.ForceAfter = time.Minute, time.Minute }
	return []Scenario{
		{Name: "ready", Does: ready},
		{Name: "found-by-control-plane", Options: func(o *controller.Options) {
			o.Discovery = providers.Internal()
			o.Discovery.Endpoint = providers.External().Endpoint // there is no cluster DNS here
		}, Does: foundByControlPlane},
		{Name: "same-names", Does: sameNames},
		{Name: "rounds", Alone: true, Does: comeAndGo},
		{Name: "unreachable", Does: unreachable},
		{Name: "made-anew", Does: madeAnew},
		{Name: "not-ready-any-more", Does: notReadyAnyMore},
		{Name: "selector", Options: func(o *controller.Options) { o.LabelSelector = "env=prod" }, Does: selector},
		{Name: "indexes", Does: indexes},
		{Name: "restored", Elect: true, Does: restored},
		{Name: "name-conflict", Does: nameConflict},
		{Name: "deleted-before-seen", Does: deletedBeforeSeen},
		{Name: "idle", Does: idle},
		{Name: "purge", Options: long, Does: purged},
		{Name: "purge-by-force", Does: purgedByForce},
		{
			Name: "purge-unreachable", Options: func(o *controller.Options) { o.PurgeTimeout = 4 * time.Second },
			Does: purgeUnreachable,
		},
		{Name: "purge-nothing", Options: long, Does: purgeNothing},
		{Name: "purge-interrupted", Options: long, Does: purgeInterrupted},
	}
}
