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

// recordFinalizer is on Deployments that have a record.
const recordFinalizer = "example.com/record"

// records keeps a DNS record, here a ConfigMap, for each Deployment. The bug: it removes its finalizer first and the
// record second. If it dies in between, the Deployment is gone, and nobody ever removes the record.
//
// Source: a crash between two writes is the first pattern of Sieve (OSDI 2022).
type records struct {
	client.Client
	mended bool
}

func (c *records) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	var site appsv1.Deployment
	if err := c.Get(ctx, r.NamespacedName, &site, client.Live); err != nil { // A cache may show it when it is gone.
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	record := configMap(r.Name + "-record")
	if !site.DeletionTimestamp.IsZero() {
		return ctrl.Result{}, c.cleanUp(ctx, &site, record)
	}
	if controllerutil.AddFinalizer(&site, recordFinalizer) {
		if err := c.Update(ctx, &site); err != nil {
			return ctrl.Result{}, err
		}
	}
	_, err := ctrl.CreateOrUpdate(ctx, c, record, func() error {
		record.Data = map[string]string{"host": r.Name + ".example.com"}
		return nil
	})
	return ctrl.Result{}, err
}

func (c *records) cleanUp(ctx context.Context, site *appsv1.Deployment, record *corev1.ConfigMap) error {
	if c.mended {
		if err := client.IgnoreNotFound(c.Delete(ctx, record)); err != nil {
			return err
		}
	}
	if controllerutil.RemoveFinalizer(site, recordFinalizer) {
		if err := c.Update(ctx, site); err != nil {
			return err
		}
	}
	if c.mended {
		return nil
	}
	return client.IgnoreNotFound(c.Delete(ctx, record))
}

func TestFinalizerRemovedBeforeCleanUp(t *testing.T) {
	Check(t, func(mended bool) simtest.Scenario {
		return simtest.Scenario{
			Build: build(&appsv1.Deployment{}, func(c client.Client) ctrl.Reconciler { return &records{c, mended} }),
			Script: func(u *simtest.User) {
				u.Create(deployment("web"))
				u.Settle()
				u.Delete(deployment("web"))
				u.Settle()
			},
		}
	})
}
