package seeded

import (
	"context"
	"fmt"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flyball-dev/flyball/simtest"
	"github.com/flyball-dev/flyball/simtest/seeded"
)

// availability sets one condition of each Deployment; others set others. The bug: a merge patch replaces the whole list
// by what it computed from its cache, and loses conditions that others have set since. The mended one adds the version
// to the patch, so the API server refuses one that was made from an old state.
type availability struct {
	client.Client
	mended bool
}

func (c *availability) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	var app appsv1.Deployment
	if err := c.Get(ctx, r.NamespacedName, &app); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	before := app.DeepCopy()
	available := appsv1.DeploymentCondition{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue}
	available.Message = fmt.Sprintf("%d replicas", *app.Spec.Replicas)
	app.Status.Conditions = slices.DeleteFunc(app.Status.Conditions, func(old appsv1.DeploymentCondition) bool {
		return old.Type == available.Type
	})
	app.Status.Conditions = append(app.Status.Conditions, available)
	if c.mended {
		patch := client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
		return ctrl.Result{}, c.Status().Patch(ctx, &app, patch)
	}
	return ctrl.Result{}, c.Status().Patch(ctx, &app, client.MergeFrom(before))
}

func TestStatusPatchedFromStaleRead(t *testing.T) {
	audit := func(d *appsv1.Deployment) {
		audited := appsv1.DeploymentCondition{Type: "Audited", Status: corev1.ConditionTrue}
		d.Status.Conditions = append([]appsv1.DeploymentCondition{audited}, d.Status.Conditions...)
	}
	seeded.Check(t, func(mended bool) simtest.Scenario {
		return simtest.Scenario{
			Build: build(func(mgr ctrl.Manager) error {
				return ctrl.NewControllerManagedBy(mgr).For(&appsv1.Deployment{}).
					Complete(&availability{mgr.GetClient(), mended})
			}),
			Script: func(u *simtest.User) {
				u.Create(deployment("web"))
				u.Settle()
				simtest.UpdateStatus(u, deployment("web"), audit)
				u.Settle()
				simtest.Update(u, deployment("web"), func(d *appsv1.Deployment) { d.Spec.Replicas = new(int32(3)) })
				u.Settle()
			},
		}
	})
}
