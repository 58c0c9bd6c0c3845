package seeded

import (
	"context"
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flyball-dev/flyball/simtest"
	"github.com/flyball-dev/flyball/simtest/seeded"
)

// claims keeps a PersistentVolumeClaim for each replica of a StatefulSet, and deletes those beyond. The bug: it takes
// the number of replicas from its cache. If that is from before the StatefulSet was scaled up again, it deletes storage
// that is in use. The mended one asks the API server before it deletes.
//
// Source: instaclustr/cassandra-operator#407.
type claims struct {
	client.Client
	api    client.Reader
	mended bool
}

func (c *claims) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	var set appsv1.StatefulSet
	if err := c.Get(ctx, r.NamespacedName, &set); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	for i := range *set.Spec.Replicas {
		err := c.Create(ctx, newClaim(fmt.Sprintf("%s-%d", r.Name, i), "1Gi"))
		if client.IgnoreAlreadyExists(err) != nil {
			return ctrl.Result{}, err
		}
	}
	var beyond corev1.PersistentVolumeClaim
	key := client.ObjectKey{Namespace: r.Namespace, Name: fmt.Sprintf("%s-%d", r.Name, *set.Spec.Replicas)}
	if err := c.api.Get(ctx, key, &beyond); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if c.mended {
		seen := set.ResourceVersion
		if err := c.api.Get(ctx, r.NamespacedName, &set); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		if set.ResourceVersion != seen {
			return ctrl.Result{}, errors.New("the cache lags behind: try again later")
		}
	}
	return ctrl.Result{}, client.IgnoreNotFound(c.Delete(ctx, &beyond))
}

func TestStaleScaleDown(t *testing.T) {
	scale := func(u *simtest.User, replicas int32) {
		simtest.Update(u, statefulSet("db", 0), func(s *appsv1.StatefulSet) { s.Spec.Replicas = &replicas })
		u.Settle()
	}
	seeded.Check(t, func(mended bool) simtest.Scenario {
		return simtest.Scenario{
			Build: build(func(mgr ctrl.Manager) error {
				return ctrl.NewControllerManagedBy(mgr).For(&appsv1.StatefulSet{}).
					Complete(&claims{mgr.GetClient(), mgr.GetAPIReader(), mended})
			}),
			Script: func(u *simtest.User) {
				u.Create(statefulSet("db", 2))
				u.Settle()
				scale(u, 1)
				scale(u, 2)
			},
		}
	})
}
