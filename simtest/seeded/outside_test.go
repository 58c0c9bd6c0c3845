package seeded

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/simtest"
)

// balancers orders a load balancer for each Deployment, and writes its number into an annotation. The bug: it orders
// another one if it dies in between. The mended one sends the UID of the Deployment along, and the cloud knows by it
// that the order is not new.
type balancers struct {
	client.Client
	cloud interface {
		Order(ctx context.Context, token string) (number string, err error)
	}
	mended bool
}

func (c *balancers) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	var app appsv1.Deployment
	if err := c.Get(ctx, r.NamespacedName, &app); err != nil || app.Annotations["balancer"] != "" {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	token := ""
	if c.mended {
		token = string(app.UID)
	}
	number, err := c.cloud.Order(ctx, token)
	if err != nil {
		return ctrl.Result{}, err
	}
	app.Annotations = map[string]string{"balancer": number}
	return ctrl.Result{}, c.Update(ctx, &app)
}

// cloud is a stand-in for the API of a cloud. It outlives the processes that use it.
type cloud struct {
	Tokens []string // of the load balancers
}

func (c *cloud) order(token string) (number string) {
	for i, known := range c.Tokens {
		if token != "" && known == token {
			return fmt.Sprint(i)
		}
	}
	c.Tokens = append(c.Tokens, token)
	return fmt.Sprint(len(c.Tokens) - 1)
}

// link is what one process reaches the cloud by.
type link struct {
	*simtest.Env
	cloud *cloud
}

// Order implements the interface that balancers uses.
func (l *link) Order(ctx context.Context, token string) (number string, err error) {
	err = l.Call(ctx, "order a load balancer", func() error {
		number = l.cloud.order(token)
		return nil
	})
	return number, err
}

func TestOutsideOrderedTwice(t *testing.T) {
	Check(t, func(mended bool) simtest.Scenario {
		return simtest.Scenario{
			Build: func(e *simtest.Env) (simtest.Program, error) {
				shared := simtest.Outside(e, "cloud", func() *cloud { return &cloud{} })
				return build(&appsv1.Deployment{}, func(c client.Client) ctrl.Reconciler {
					return &balancers{c, &link{e, shared}, mended}
				})(e)
			},
			Script: func(u *simtest.User) {
				u.Create(deployment("web"))
				u.Settle()
			},
		}
	})
}
