package endpoints_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/controllers/endpoints"
	"github.com/flyball-dev/flyball/internal/simulated"
	"github.com/flyball-dev/flyball/simtest"
)

func TestSimulatedLife(t *testing.T) {
	simtest.Check(t, simtest.Scenario{
		Build: simulated.Selected(endpoints.Name),
		Others: []simulated.Build{
			simulated.GarbageCollector(corev1.Resource("services"), corev1.Resource("endpoints")),
		},
		Roles:  simulated.Roles(t, "../../deploy/role.yaml", "../../deploy/manager.yaml"),
		Budget: 2 * time.Second,
		Script: simulated.LifeOfAService,
	})
}
