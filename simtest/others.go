package simtest

import (
	"time"

	"github.com/flyball-dev/flyball/controllers/garbagecollector"
	"github.com/flyball-dev/flyball/localapi/cluster"
)

// GarbageCollector builds a program for [Scenario.Others] that deletes objects whose owners are gone. Definitions of
// custom resources must be among [Scenario.Objects]: it learns of others only after an hour of virtual time.
func GarbageCollector(e *Env) (Program, error) {
	return cluster.New(e.Config(), cluster.Options{
		NoKubelet: true, NoNamespaces: true,
		GarbageCollector: garbagecollector.Options{Workers: 1, DiscoveryPeriod: time.Hour},
	})
}
