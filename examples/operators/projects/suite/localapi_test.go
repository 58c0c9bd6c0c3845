package suite_test

import (
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/examples/operators/internal/optest"
	"github.com/flyball-dev/flyball/examples/operators/projects/controller"
	"github.com/flyball-dev/flyball/examples/operators/projects/manifests"
	"github.com/flyball-dev/flyball/examples/operators/projects/suite"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

var operator = optest.Operator{
	Namespace: "project-system", Name: controller.Name,
	Prepare: suite.Prepare, Objects: manifests.Objects,
}

// TestScenarios plays them all. FLYBALL_ROUNDS is how often a Project comes and goes.
func TestScenarios(t *testing.T) {
	rounds := optest.Rounds(t, "FLYBALL_ROUNDS", 5)
	var all []optest.Scenario
	for _, s := range suite.Scenarios() {
		alone := s.Name == "rounds" // It counts the goroutines of the process.
		all = append(all,
			optest.Scenario{Name: s.Name, Alone: alone, Play: func(t *testing.T, admin, operator *rest.Config) {
				cluster := suite.Cluster{
					Admin: admin, Operator: operator, Idle: time.Hour, Rounds: rounds,
					Soon: time.Second,
				}
				if s.Name == "restored" { // One leads; the others have no need to renew a lease all the time.
					cluster.Base = ctrl.Options{
						LeaderElection: manager.LeaderElection{
							Enabled: true, Namespace: "project-system",
							Name: controller.Name,
						},
					}
				}
				suite.Play(t, cluster, s)
			}})
	}
	operator.Play(t, all)
}
