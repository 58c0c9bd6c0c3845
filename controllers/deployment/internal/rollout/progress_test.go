package rollout

import (
	"testing"

	appsv1 "k8s.io/api/apps/v1"
)

// Source: k8s.io/kubernetes v1.37.2 pkg/controller/deployment/util/deployment_util.go, DeploymentComplete
func TestComplete(t *testing.T) {
	limits := Limits{Replicas: 3}
	d := web(3, func(d *appsv1.Deployment) { d.Generation = 2 })
	done := appsv1.DeploymentStatus{ObservedGeneration: 2, Replicas: 3, UpdatedReplicas: 3, AvailableReplicas: 3}
	if !limits.Complete(d, &done) {
		t.Error("not complete")
	}
	for name, change := range map[string]func(*appsv1.DeploymentStatus){
		"an old pod":       func(s *appsv1.DeploymentStatus) { s.Replicas = 4 },
		"a new one lacks":  func(s *appsv1.DeploymentStatus) { s.UpdatedReplicas = 2 },
		"one not up":       func(s *appsv1.DeploymentStatus) { s.AvailableReplicas = 2 },
		"an older version": func(s *appsv1.DeploymentStatus) { s.ObservedGeneration = 1 },
	} {
		s := done
		change(&s)
		if limits.Complete(d, &s) {
			t.Errorf("%s: complete", name)
		}
	}
}
