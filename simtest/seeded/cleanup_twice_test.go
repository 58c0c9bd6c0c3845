package seeded

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/simtest"
)

// mirrorFinalizer is on Deployments that have mirrors.
const mirrorFinalizer = "example.com/mirrors"

// mirrors keeps two ConfigMaps for each Deployment. The bug: its clean-up fails if one of them is gone already. If it
// dies after the first delete, every later attempt fails at the same delete, and the Deployment is never released.
//
// Source: a crash between two writes is the first pattern of Sieve (OSDI 2022).
type mirrors struct {
	client.Client
	mended bool
}

func (c *mirrors) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	var site appsv1.Deployment
	if err := c.Get(ctx, r.NamespacedName, &site, client.Live); err != nil { // A cache may show it when it is gone.
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	copies := []*corev1.ConfigMap{configMap(r.Name + "-east"), configMap(r.Name + "-west")}
	deleting, err := controllerutil.Finalize(ctx, c, &site, mirrorFinalizer, func(ctx context.Context) error {
		for _, m := range copies {
			err := c.Delete(ctx, m)
			if c.mended {
				err = client.IgnoreNotFound(err)
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
	if deleting || err != nil {
		return ctrl.Result{}, err
	}
	for _, m := range copies {
		if _, err := ctrl.CreateOrUpdate(ctx, c, m, func() error { return nil }); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, nil
}

func TestCleanUpNotIdempotent(t *testing.T) {
	Check(t, func(mended bool) simtest.Scenario {
		return simtest.Scenario{
			Build: build(&appsv1.Deployment{}, func(c client.Client) ctrl.Reconciler { return &mirrors{c, mended} }),
			Script: func(u *simtest.User) {
				u.Create(deployment("web"))
				u.Settle()
				u.Delete(deployment("web"))
				u.Settle()
			},
		}
	})
}
