package main

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/conditions"
	"github.com/flyball-dev/flyball/examples/operators/projects/api"
	"github.com/flyball-dev/flyball/examples/operators/projects/api/infrastructure"
	"github.com/flyball-dev/flyball/examples/operators/projects/controller"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/multicluster/providers"
	"github.com/flyball-dev/flyball/simtest"
	"github.com/flyball-dev/flyball/simtest/simulated"
)

// provider is the infrastructure provider: it reports that control planes answer.
type provider struct{ client.Client }

// Reconcile implements ctrl.Reconciler.
func (p *provider) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	plane := &infrastructure.ProjectControlPlane{}
	if err := p.Get(ctx, r.NamespacedName, plane); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	ready := metav1.Condition{
		Type: infrastructure.ControlPlaneReady, Status: metav1.ConditionTrue, Reason: "Serving",
	}
	if !conditions.Set(&plane.Status.Conditions, plane.Generation, ready) {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(p.Status().Update(ctx, plane))
}

// A Project gets a control plane, which is filled, stops and answers again, and is emptied when the Project goes.
// Another Project takes its name. A third one goes before it is ready.
func TestSimulatedLife(t *testing.T) {
	scheme, err := controller.NewScheme()
	if err != nil {
		t.Fatal(err)
	}
	s := simtest.Scenario{
		Clusters: []string{"shop", "blog"},
		Objects:  operator.Definitions(t),
		Scheme:   scheme,
		Build: func(e *simtest.Env) (simtest.Program, error) {
			// After that time a Project goes without its content. A standstill of ten minutes counts.
			o := controller.Options{PurgeTimeout: time.Hour}
			o.Discovery = providers.External()
			o.Discovery.Endpoint = "http://{{.Name}}"
			return controller.New(e.Config(), ctrl.Options{}, o)
		},
		Roles: simulated.Roles(t, "manifests/role.yaml", "manifests/operator.yaml"),
		Others: []func(*simtest.Env) (simtest.Program, error){
			func(e *simtest.Env) (simtest.Program, error) {
				m, err := ctrl.NewManager(e.Config(), ctrl.Options{Scheme: scheme})
				if err != nil {
					return nil, err
				}
				return m, ctrl.NewControllerManagedBy(m).For(&infrastructure.ProjectControlPlane{}).
					Complete(&provider{m.GetClient()})
			},
			simulated.GarbageCollector(
				api.ResourceManagerGroup.WithResource("projects").GroupResource(),
				infrastructure.GroupVersion.WithResource("projectcontrolplanes").GroupResource(),
			),
		},
		Budget: 2 * time.Second,
		Script: liveInProjects,
	}
	simtest.Check(t, s)
}

func liveInProjects(u *simtest.User) {
	named := func(name string) *api.Project {
		return &api.Project{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       api.ProjectSpec{OwnerRef: api.OwnerRef{Kind: "Organization", Name: "acme"}},
		}
	}
	answers := func(status metav1.ConditionStatus) {
		plane := &infrastructure.ProjectControlPlane{ObjectMeta: metav1.ObjectMeta{Name: "shop"}}
		simtest.UpdateStatus(u, plane, func(p *infrastructure.ProjectControlPlane) {
			p.Status.Conditions[0].Status = status
		})
	}
	inside := func(obj client.Object, namespace string) client.Object {
		obj.SetNamespace(namespace)
		obj.SetName("mine")
		return obj
	}
	team := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}
	u.Create(named("shop"))
	u.Settle()
	u.In("shop").Create(team)
	u.In("shop").Create(inside(&corev1.ConfigMap{}, "team"))
	u.In("shop").Create(inside(&corev1.Secret{}, "default"))
	u.In("shop").Delete(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "project-info"}})
	u.Settle()
	answers(metav1.ConditionFalse)
	u.Settle()
	answers(metav1.ConditionTrue)
	u.Settle()
	u.Create(named("blog"))
	u.Delete(named("blog"))
	u.Delete(named("shop"))
	u.Settle()
	u.Create(named("shop"))
	u.Settle()
}
