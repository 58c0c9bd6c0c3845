package seeded

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/simtest"
)

// databases makes a Secret for each Deployment, and a ConfigMap that names the Secret. The bug: it takes the Secret as
// a sign that both are there. If it dies between the two creates, the ConfigMap is never made.
//
// Source: a crash between two writes is the first pattern of Sieve (OSDI 2022).
type databases struct {
	client.Client
	mended bool
}

func (c *databases) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	var database appsv1.Deployment
	if err := c.Get(ctx, r.NamespacedName, &database); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	secret := &corev1.Secret{ObjectMeta: named(r.Name + "-password")}
	switch err := c.Get(ctx, client.ObjectKeyFromObject(secret), secret); {
	case err == nil:
		if !c.mended {
			return ctrl.Result{}, nil
		}
	case apierrors.IsNotFound(err):
		if err := c.Create(ctx, secret); err != nil {
			return ctrl.Result{}, err
		}
	default:
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, client.IgnoreAlreadyExists(c.Create(ctx, configMap(r.Name, "secret", secret.Name)))
}

func TestTwoStepsWithoutResume(t *testing.T) {
	Check(t, func(mended bool) simtest.Scenario {
		return simtest.Scenario{
			Build: build(&appsv1.Deployment{}, func(c client.Client) ctrl.Reconciler { return &databases{c, mended} }),
			Script: func(u *simtest.User) {
				u.Create(deployment("db"))
				u.Settle()
			},
		}
	})
}
