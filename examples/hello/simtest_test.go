package main

import (
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/simtest"
	"github.com/flyball-dev/flyball/simtest/simulated"
)

// A Deployment is greeted, its greeting is changed and deleted by others, and it is replaced by another of its name.
func TestSimulatedLife(t *testing.T) {
	labels := map[string]string{"app": "web"}
	web := &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
			},
		},
	}
	greeting := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web-greeting"}}
	simtest.Check(t, simtest.Scenario{
		Build: func(e *simtest.Env) (simtest.Program, error) { return newManager(e.Config()) },
		Others: []func(*simtest.Env) (simtest.Program, error){
			simulated.GarbageCollector(corev1.Resource("configmaps"), appsv1.Resource("deployments")),
		},
		Budget: time.Second,
		Script: func(u *simtest.User) {
			u.Create(web)
			u.Settle()
			simtest.Update(u, greeting, func(c *corev1.ConfigMap) { c.Data["text"] = "goodbye" })
			u.Settle()
			u.Delete(greeting)
			u.Settle()
			u.Delete(web)
			u.Create(web)
			u.Settle()
			u.Delete(web)
			u.Settle()
		},
	})
}
