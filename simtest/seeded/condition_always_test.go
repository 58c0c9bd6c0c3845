package seeded

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/simtest"
)

// progress sets a condition of each Deployment. The bug: it sets the time of the condition whenever it runs. Each write
// of the status brings an event, which makes it run again, so it never comes to rest.
type progress struct {
	client.Client
	mended bool
}

func (c *progress) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	var app appsv1.Deployment
	if err := c.Get(ctx, r.NamespacedName, &app); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	available := appsv1.DeploymentCondition{
		Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, LastUpdateTime: metav1.Now(),
	}
	for _, old := range app.Status.Conditions {
		if c.mended && old.Type == available.Type && old.Status == available.Status {
			return ctrl.Result{}, nil
		}
	}
	app.Status.Conditions = []appsv1.DeploymentCondition{available}
	return ctrl.Result{}, c.Status().Update(ctx, &app)
}

func TestConditionWrittenEveryTime(t *testing.T) {
	Check(t, func(mended bool) simtest.Scenario {
		return simtest.Scenario{
			Build: build(&appsv1.Deployment{}, func(c client.Client) ctrl.Reconciler { return &progress{c, mended} }),
			Script: func(u *simtest.User) {
				u.Create(deployment("web"))
				u.Settle()
			},
		}
	})
}
