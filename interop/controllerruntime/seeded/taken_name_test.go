package seeded

import (
	"context"
	"errors"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/flyball-dev/flyball/simtest"
	"github.com/flyball-dev/flyball/simtest/seeded"
)

// tokensFinalizer is on Deployments that have a token.
const tokensFinalizer = "example.com/token"

// tokens keeps a Secret for each Deployment, and deletes it with the Deployment. The bug: it takes any Secret of that
// name for its own, also one that a user has made, and deletes that in the end. The mended one looks at the owner.
type tokens struct {
	client.Client
	api    client.Reader
	mended bool
}

func (c *tokens) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	var app appsv1.Deployment
	if err := c.Get(ctx, r.NamespacedName, &app); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	secret := &corev1.Secret{ObjectMeta: named(r.Name + "-token")}
	if !app.DeletionTimestamp.IsZero() {
		err := c.api.Get(ctx, client.ObjectKeyFromObject(secret), secret)
		if err == nil && (!c.mended || metav1.IsControlledBy(secret, &app)) {
			err = c.Delete(ctx, secret, client.Preconditions{UID: &secret.UID})
		}
		if client.IgnoreNotFound(err) != nil || !controllerutil.RemoveFinalizer(&app, tokensFinalizer) {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
		return ctrl.Result{}, client.IgnoreNotFound(c.Update(ctx, &app))
	}
	if controllerutil.AddFinalizer(&app, tokensFinalizer) {
		if err := c.Update(ctx, &app); err != nil {
			return ctrl.Result{}, err
		}
	}
	if err := ctrl.SetControllerReference(&app, secret, c.Scheme()); err != nil {
		return ctrl.Result{}, err
	}
	return ctrl.Result{}, client.IgnoreAlreadyExists(c.Create(ctx, secret))
}

func TestNameTakenBySomebodyElse(t *testing.T) {
	seeded.Check(t, func(mended bool) simtest.Scenario {
		return simtest.Scenario{
			Build: build(func(mgr ctrl.Manager) error {
				return ctrl.NewControllerManagedBy(mgr).For(&appsv1.Deployment{}).
					Complete(&tokens{mgr.GetClient(), mgr.GetAPIReader(), mended})
			}),
			Script: func(u *simtest.User) {
				u.Create(&corev1.Secret{ObjectMeta: named("web-token")})
				u.Create(deployment("web"))
				u.Settle()
				u.Delete(deployment("web"))
				u.Settle()
			},
			Matches: func(s *simtest.State) error {
				if _, ok := simtest.Get[*corev1.Secret](s, "default", "web-token"); !ok {
					return errors.New("the user's Secret is gone")
				}
				return nil
			},
		}
	})
}
