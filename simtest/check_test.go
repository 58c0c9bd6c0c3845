package simtest_test

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/simtest"
)

// greeter keeps a ConfigMap for each Deployment.
type greeter struct{ client.Client }

func (g *greeter) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	var deployment appsv1.Deployment
	if err := g.Get(ctx, r.NamespacedName, &deployment); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	greeting := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, Name: r.Name + "-greeting"}}
	_, err := ctrl.CreateOrUpdate(ctx, g, greeting, func() error {
		greeting.Data = map[string]string{
			"text": "hello, " + deployment.Name, "pace": string(deployment.Spec.Strategy.Type),
		}
		return ctrl.SetControllerReference(&deployment, greeting, g.Scheme())
	})
	return ctrl.Result{}, err
}

func newGreeter(e *simtest.Env) (simtest.Program, error) {
	mgr, err := ctrl.NewManager(e.Config(), ctrl.Options{})
	if err != nil {
		return nil, err
	}
	g := &greeter{mgr.GetClient()}
	return mgr, ctrl.NewControllerManagedBy(mgr).For(&appsv1.Deployment{}).Owns(&corev1.ConfigMap{}).Complete(g)
}

func webDeployment() *appsv1.Deployment {
	labels := map[string]string{"app": "web"}
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web"},
		Spec: appsv1.DeploymentSpec{
			Replicas: ptr.To[int32](1), Selector: &metav1.LabelSelector{MatchLabels: labels},
			Template: corev1.PodTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: labels},
				Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "web", Image: "web:1"}}},
			},
		},
	}
}

func TestGreeter(t *testing.T) {
	simtest.Check(t, simtest.Scenario{
		Build: newGreeter,
		Script: func(u *simtest.User) {
			u.Create(webDeployment())
			u.Settle()
			simtest.Update(u, webDeployment(), func(d *appsv1.Deployment) {
				d.Spec.Strategy = appsv1.DeploymentStrategy{Type: appsv1.RecreateDeploymentStrategyType}
			})
			u.Settle()
		},
	})
}
