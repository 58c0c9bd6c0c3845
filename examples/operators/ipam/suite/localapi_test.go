package suite_test

import (
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/examples/operators/internal/optest"
	"github.com/flyball-dev/flyball/examples/operators/ipam/controller"
	"github.com/flyball-dev/flyball/examples/operators/ipam/manifests"
	"github.com/flyball-dev/flyball/examples/operators/ipam/suite"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

var operator = optest.Operator{
	Namespace: "ipam-system", Name: controller.Name,
	Prepare: suite.Prepare, Objects: manifests.Objects,
}

// TestScenarios plays them all.
func TestScenarios(t *testing.T) {
	var all []optest.Scenario
	for _, s := range suite.Scenarios() {
		all = append(all, optest.Scenario{Name: s.Name, Play: func(t *testing.T, admin, operator *rest.Config) {
			suite.Play(t, clusterFor(s.Name, admin, operator), s)
		}})
	}
	operator.Play(t, all)
}

func clusterFor(scenario string, admin, operator *rest.Config) suite.Cluster {
	cluster := suite.Cluster{Admin: admin, Operator: operator, Idle: 10 * time.Minute}
	switch scenario {
	case "pool-orphans":
		cluster.Idle = 6 * time.Hour
	case "slices-in-a-list": // One leads; the others have no need to renew a lease all the time.
		cluster.Idle = time.Minute
		cluster.Base = ctrl.Options{
			LeaderElection: manager.LeaderElection{Enabled: true, Namespace: "ipam-system", Name: controller.Name},
		}
	}
	return cluster
}
