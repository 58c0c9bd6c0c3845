package seeded

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/simtest"
)

// quotas makes a ResourceQuota for each Namespace. The bug: it drops the error of the create, so that nothing makes it
// try again.
type quotas struct {
	client.Client
	mended bool
}

func (c *quotas) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	var team corev1.Namespace
	if err := c.Get(ctx, r.NamespacedName, &team); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if team.Labels["team"] == "" {
		return ctrl.Result{}, nil
	}
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: r.Name, Name: "team"}}
	if err := c.Create(ctx, quota); client.IgnoreAlreadyExists(err) != nil {
		if c.mended {
			return ctrl.Result{}, err
		}
		ctrl.LoggerFrom(ctx).Error(err, "Create quota")
	}
	return ctrl.Result{}, nil
}

func TestErrorSwallowed(t *testing.T) {
	Check(t, func(mended bool) simtest.Scenario {
		return simtest.Scenario{
			Build: build(&corev1.Namespace{}, func(c client.Client) ctrl.Reconciler { return &quotas{c, mended} }),
			Script: func(u *simtest.User) {
				team := metav1.ObjectMeta{Name: "red", Labels: map[string]string{"team": "red"}}
				u.Create(&corev1.Namespace{ObjectMeta: team})
				u.Settle()
			},
		}
	})
}
