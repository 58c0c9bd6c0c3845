package seeded

import (
	"context"
	"errors"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/simtest"
)

// users makes a user of a database for each Deployment, and keeps the password in a Secret. The database is here a
// Secret too: it can be written, but the password cannot be read from it. The bug: the user comes first. If it dies
// before the Secret is there, it makes up another password, which the database does not know.
//
// Source: a crash between two writes is the first pattern of Sieve (OSDI 2022).
type users struct {
	client.Client
	mended bool
	invent func() string
}

func (c *users) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	var app appsv1.Deployment
	if err := c.Get(ctx, r.NamespacedName, &app); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	secret := &corev1.Secret{ObjectMeta: named(r.Name + "-password")}
	known := c.Get(ctx, client.ObjectKeyFromObject(secret), secret)
	if client.IgnoreNotFound(known) != nil {
		return ctrl.Result{}, known
	}
	if known != nil {
		secret.Data = map[string][]byte{"password": []byte(c.invent())}
	}
	if known != nil && c.mended {
		if err := c.Create(ctx, secret); err != nil {
			return ctrl.Result{}, err
		}
	}
	user := &corev1.Secret{ObjectMeta: named(r.Name + "-user"), Data: secret.Data}
	if err := client.IgnoreAlreadyExists(c.Create(ctx, user)); err != nil {
		return ctrl.Result{}, err
	}
	if known != nil && !c.mended {
		return ctrl.Result{}, c.Create(ctx, secret)
	}
	return ctrl.Result{}, nil
}

func TestPasswordMadeTwice(t *testing.T) {
	Check(t, func(mended bool) simtest.Scenario {
		return simtest.Scenario{
			Build: func(e *simtest.Env) (simtest.Program, error) {
				made := 0
				invent := func() string {
					made++
					return fmt.Sprintf("password %d of process %d", made, e.Incarnation())
				}
				return build(&appsv1.Deployment{}, func(c client.Client) ctrl.Reconciler {
					return &users{c, mended, invent}
				})(e)
			},
			Script: func(u *simtest.User) {
				u.Create(deployment("db"))
				u.Settle()
			},
			Matches: func(s *simtest.State) error {
				secret, ok := simtest.Get[*corev1.Secret](s, "default", "db-password")
				user, found := simtest.Get[*corev1.Secret](s, "default", "db-user")
				if !ok || !found || string(secret.Data["password"]) != string(user.Data["password"]) {
					return errors.New("the password in the Secret does not open the database")
				}
				return nil
			},
			Allow: []simtest.Rule{simtest.RuleEnd}, // Another password is as good.
		}
	})
}
