package deployment_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/controllers/deployment"
	"github.com/flyball-dev/flyball/controllers/replicaset"
	"github.com/flyball-dev/flyball/simtest"
	"github.com/flyball-dev/flyball/simtest/simulated"
)

var simulatedDeployment = &appsv1.Deployment{
	ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
	Spec: appsv1.DeploymentSpec{
		Replicas: ptr.To[int32](2),
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
		Strategy: appsv1.DeploymentStrategy{
			Type: appsv1.RollingUpdateDeploymentStrategyType,
			RollingUpdate: &appsv1.RollingUpdateDeployment{
				MaxSurge: ptr.To(intstr.FromInt32(1)), MaxUnavailable: ptr.To(intstr.FromInt32(0)),
			},
		},
		RevisionHistoryLimit: ptr.To[int32](1),
		Template: corev1.PodTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"app": "web"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
		},
	},
}

func rollOut(u *simtest.User, image string) {
	simtest.Update(u, simulatedDeployment, func(d *appsv1.Deployment) {
		d.Spec.Template.Spec.Containers[0].Image = image
	})
}

// A Deployment is rolled out, rolled out again before that is done, scaled, and replaced by another of its name.
func TestSimulatedLife(t *testing.T) {
	simtest.Check(t, simtest.Scenario{
		Build: simulated.Controllers(deployment.Name),
		Others: []func(*simtest.Env) (simtest.Program, error){
			simulated.Controllers(replicaset.Name), simulated.Node,
			simulated.GarbageCollector(corev1.Resource("pods"), appsv1.Resource("replicasets"),
				appsv1.Resource("deployments")),
		},
		Roles:  simulated.Roles(t, "../../deploy/role.yaml", "../../deploy/manager.yaml"),
		Budget: 2 * time.Second,
		Script: func(u *simtest.User) {
			u.Create(simulatedDeployment)
			u.Settle()
			rollOut(u, "web:2")
			u.Settle()
			rollOut(u, "web:3")
			rollOut(u, "web:1")
			u.Settle()
			simtest.Update(u, simulatedDeployment, func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](3) })
			u.Settle()
			u.Delete(simulatedDeployment)
			u.Create(simulatedDeployment)
			u.Settle()
		},
		Always: map[string]func(s *simtest.State) error{
			"no more replicas than the surge allows": withinSurge,
			"enough pods are available":              available,
		},
	})
}

// withinSurge: the ReplicaSets of a Deployment together ask for no more pods than its replicas and the surge. A
// ReplicaSet whose creation was not answered does not count until its event comes, as in kube-controller-manager: for
// each such fault there may be one more.
func withinSurge(s *simtest.State) error {
	d, ok := simtest.Get[*appsv1.Deployment](s, "default", "web")
	if !ok {
		return nil
	}
	total, sizes := int32(0), ""
	for _, set := range simtest.List[*appsv1.ReplicaSet](s, "default") {
		if metav1.IsControlledBy(set, d) {
			total += *set.Spec.Replicas
			sizes += fmt.Sprintf(" %s=%d", set.Name, *set.Spec.Replicas)
		}
	}
	if limit := *d.Spec.Replicas + 1 + 2; total > limit {
		return fmt.Errorf("%d replicas, the limit is %d:%s", total, limit, sizes)
	}
	return nil
}

// available: a Deployment that reports that it is available has as many ready pods as it must have, which are 2 as long
// as the script runs: nothing else than the controller takes pods away.
func available(s *simtest.State) error {
	d, ok := simtest.Get[*appsv1.Deployment](s, "default", "web")
	if !ok || !slices.ContainsFunc(d.Status.Conditions, func(c appsv1.DeploymentCondition) bool {
		return c.Type == appsv1.DeploymentAvailable && c.Status == corev1.ConditionTrue
	}) {
		return nil
	}
	ready := 0
	for _, pod := range simtest.List[*corev1.Pod](s, "default") {
		owner := metav1.GetControllerOf(pod)
		if owner == nil || pod.DeletionTimestamp != nil || pod.Status.Phase != corev1.PodRunning {
			continue
		}
		if set, ok := simtest.Get[*appsv1.ReplicaSet](s, "default", owner.Name); ok && metav1.IsControlledBy(set, d) {
			ready++
		}
	}
	if ready < 2 {
		return fmt.Errorf("%d pods are ready", ready)
	}
	return nil
}
