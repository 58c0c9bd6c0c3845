package simtest_test

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/controllers/deployment"
	"github.com/flyball-dev/flyball/controllers/replicaset"
	"github.com/flyball-dev/flyball/simtest"
	"github.com/flyball-dev/flyball/simtest/simulated"
)

// rollout is the life of a Deployment of three pods: it is created, gets a new image, and is scaled down.
func rollout(u *simtest.User) {
	web := webDeployment()
	web.Spec.Replicas = ptr.To[int32](3)
	u.Create(web)
	u.Settle()
	simtest.Update(u, web, func(d *appsv1.Deployment) { d.Spec.Template.Spec.Containers[0].Image = "web:2" })
	u.Settle()
	simtest.Update(u, web, func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](1) })
	u.Settle()
}

// TestSpeedOfDeployment measures the run without faults of a Deployment: the controller alone, and with all that it
// takes to have pods.
func TestSpeedOfDeployment(t *testing.T) {
	if *simtest.Speed == "" {
		t.Skip("measures only with -sim.speed")
	}
	for _, test := range []struct {
		name string
		s    simtest.Scenario
	}{
		{"alone", simtest.Scenario{Build: simulated.Controllers(deployment.Name)}},
		{"with ReplicaSets and a node", simtest.Scenario{
			Build:  simulated.Controllers(deployment.Name, replicaset.Name),
			Others: []func(*simtest.Env) (simtest.Program, error){simulated.Node},
		}},
	} {
		test.s.Script = rollout
		const runs = 20
		var took time.Duration
		var writes int
		for i := range runs + 1 {
			start := time.Now()
			n, findings := simtest.Once(t, &test.s)
			if len(findings) > 0 {
				t.Fatal(findings)
			}
			if i > 0 { // The first run also reads schemas.
				took += time.Since(start)
			}
			writes = n
		}
		t.Logf("%s: %d writes, %v a run", test.name, writes, took/runs)
	}
}
