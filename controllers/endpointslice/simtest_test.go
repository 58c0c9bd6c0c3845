package endpointslice_test

import (
	"testing"
	"time"

	"github.com/flyball-dev/flyball/controllers/endpointslice"
	"github.com/flyball-dev/flyball/internal/simulated"
	"github.com/flyball-dev/flyball/simtest"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
)

func TestSimulatedLife(t *testing.T) {
	simtest.Check(t, simtest.Scenario{
		Build: simulated.Selected(endpointslice.Name),
		Others: []simulated.Build{
			simulated.GarbageCollector(corev1.Resource("services"), discoveryv1.Resource("endpointslices")),
		},
		Roles:  simulated.Roles(t, "../../deploy/role.yaml", "../../deploy/manager.yaml"),
		Budget: 2 * time.Second,
		// As in kube-controller-manager, a create whose answer was lost is repeated, and the surplus slice deleted.
		Allow:  []simtest.Rule{simtest.RuleCreates},
		Script: simulated.LifeOfAService,
	})
}
