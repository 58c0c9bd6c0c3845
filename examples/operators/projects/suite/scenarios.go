package suite

import (
	"time"

	"github.com/flyball-dev/flyball/examples/operators/projects/controller"
	"github.com/flyball-dev/flyball/multicluster/providers"
)

// Scenario is something that the operator must be able to do.
type Scenario struct {
	// Name is the name of the test.
	Name string
	// Options changes the operator's options; nil leaves them.
	Options func(*controller.Options)
	Play    func(*World)
}

// Scenarios returns all scenarios.
func Scenarios() []Scenario {
	long := func(o *controller.Options) { o.PurgeTimeout, o.ForceAfter = time.Minute, time.Minute }
	return []Scenario{
		{Name: "ready", Play: ready},
		{Name: "found-by-control-plane", Options: func(o *controller.Options) {
			o.Discovery = providers.Internal()
			o.Discovery.Endpoint = providers.External().Endpoint // there is no cluster DNS here
		}, Play: foundByControlPlane},
		{Name: "same-names", Play: sameNames},
		{Name: "rounds", Play: rounds},
		{Name: "unreachable", Play: unreachable},
		{Name: "made-anew", Play: madeAnew},
		{Name: "not-ready-any-more", Play: notReadyAnyMore},
		{Name: "selector", Options: func(o *controller.Options) { o.LabelSelector = "env=prod" }, Play: selector},
		{Name: "indexes", Play: indexes},
		{Name: "restored", Play: restored},
		{Name: "name-conflict", Play: nameConflict},
		{Name: "deleted-before-seen", Play: deletedBeforeSeen},
		{Name: "idle", Play: idle},
		{Name: "purge", Options: long, Play: purged},
		{Name: "purge-by-force", Play: purgedByForce},
		{
			Name: "purge-unreachable", Options: func(o *controller.Options) { o.PurgeTimeout = 4 * time.Second },
			Play: purgeUnreachable,
		},
		{Name: "purge-nothing", Options: long, Play: purgeNothing},
		{Name: "purge-interrupted", Options: long, Play: purgeInterrupted},
	}
}
