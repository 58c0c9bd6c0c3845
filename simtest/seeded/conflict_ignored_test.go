package seeded

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/simtest"
)

// registry adds the name of each Deployment to one ConfigMap, which others write to as well. The bug: it takes a
// conflict for harmless, since whoever wrote must cause an event. But the ConfigMap is not among what it watches.
type registry struct {
	client.Client
	mended bool
}

func (c *registry) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	var app appsv1.Deployment
	if err := c.Get(ctx, r.NamespacedName, &app); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	names := configMap("names")
	err := c.Get(ctx, client.ObjectKeyFromObject(names), names, client.Live)
	if err != nil || names.Data[r.Name] != "" {
		return ctrl.Result{}, err
	}
	names.Data[r.Name] = "registered"
	err = c.Update(ctx, names)
	if apierrors.IsConflict(err) && !c.mended {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, err
}

func TestConflictIgnored(t *testing.T) {
	Check(t, func(mended bool) simtest.Scenario {
		return simtest.Scenario{
			Build: build(&appsv1.Deployment{}, func(c client.Client) ctrl.Reconciler { return &registry{c, mended} }),
			Script: func(u *simtest.User) {
				u.Create(configMap("names", "mine", "reserved"))
				u.Create(deployment("web"))
				u.Settle()
			},
		}
	})
}
