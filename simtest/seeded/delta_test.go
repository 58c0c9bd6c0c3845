package seeded

import (
	"context"
	"strconv"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/simtest"
)

// orders adds the number in a ConfigMap to the replicas of the Deployment of that name, and then marks the ConfigMap as
// done. The bug: it adds twice if it dies in between. The mended one keeps in the Deployment what it has added, in the
// same write.
//
// Source: a crash between two writes is the first pattern of Sieve (OSDI 2022).
type orders struct {
	client.Client
	mended bool
}

func (c *orders) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	var order corev1.ConfigMap
	if err := c.Get(ctx, r.NamespacedName, &order); err != nil || order.Data["done"] != "" {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	more, err := strconv.Atoi(order.Data["add"])
	if err != nil {
		return ctrl.Result{}, nil // not an order
	}
	var app appsv1.Deployment
	if err := c.Get(ctx, r.NamespacedName, &app); err != nil {
		return ctrl.Result{}, err
	}
	if !c.mended || app.Annotations["added"] != string(order.UID) {
		*app.Spec.Replicas += int32(more)
		app.Annotations = map[string]string{"added": string(order.UID)}
		if err := c.Update(ctx, &app); err != nil {
			return ctrl.Result{}, err
		}
	}
	order.Data["done"] = "yes"
	return ctrl.Result{}, c.Update(ctx, &order)
}

func TestScaleByDelta(t *testing.T) {
	Check(t, func(mended bool) simtest.Scenario {
		return simtest.Scenario{
			Build: build(&corev1.ConfigMap{}, func(c client.Client) ctrl.Reconciler { return &orders{c, mended} }),
			Script: func(u *simtest.User) {
				u.Create(deployment("web"))
				u.Create(configMap("web", "add", "2"))
				u.Settle()
			},
		}
	})
}
