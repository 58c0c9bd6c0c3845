package seeded

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flyball-dev/flyball/simtest"
	"github.com/flyball-dev/flyball/simtest/seeded"
)

// sweeper keeps a ConfigMap for each Deployment, and sweeps up ConfigMaps without one. The bug: it looks for
// Deployments in its cache, and for ConfigMaps in the API server. With a cache that lags it deletes what belongs to a
// new Deployment. The mended one asks the API server for the Deployment before it deletes.
//
// Source: stale caches are the second pattern of Sieve (OSDI 2022).
type sweeper struct {
	client.Client
	api    client.Reader
	mended bool
}

func (c *sweeper) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	var apps appsv1.DeploymentList
	if err := c.List(ctx, &apps, client.InNamespace(r.Namespace)); err != nil {
		return ctrl.Result{}, err
	}
	wanted := map[string]bool{}
	for _, app := range apps.Items {
		wanted[app.Name] = true
	}
	if wanted[r.Name] {
		m := configMap(r.Name)
		m.Labels = map[string]string{"managed-by": "sweeper"}
		if err := client.IgnoreAlreadyExists(c.Create(ctx, m)); err != nil {
			return ctrl.Result{}, err
		}
	}
	var present corev1.ConfigMapList
	err := c.api.List(ctx, &present, client.InNamespace(r.Namespace), client.MatchingLabels{"managed-by": "sweeper"})
	if err != nil {
		return ctrl.Result{}, err
	}
	for i := range present.Items {
		m := &present.Items[i]
		if wanted[m.Name] {
			continue
		}
		if c.mended {
			err := c.api.Get(ctx, client.ObjectKeyFromObject(m), &appsv1.Deployment{})
			if err == nil {
				continue
			}
			if !apierrors.IsNotFound(err) {
				return ctrl.Result{}, err
			}
		}
		if err := client.IgnoreNotFound(c.Delete(ctx, m)); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, nil
}

func TestSweepByStaleList(t *testing.T) {
	seeded.Check(t, func(mended bool) simtest.Scenario {
		return simtest.Scenario{
			Build: build(func(mgr ctrl.Manager) error {
				return ctrl.NewControllerManagedBy(mgr).For(&appsv1.Deployment{}).
					Complete(&sweeper{mgr.GetClient(), mgr.GetAPIReader(), mended})
			}),
			Script: func(u *simtest.User) {
				u.Create(deployment("stays")) // A process that starts has something to do, and sweeps.
				u.Settle()
				u.Create(deployment("a"))
				u.Settle()
				u.Delete(deployment("a"))
				u.Settle()
				u.Create(deployment("b"))
				u.Create(deployment("c"))
				u.Settle()
			},
		}
	})
}
