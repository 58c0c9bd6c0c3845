package seeded

import (
	"context"
	"fmt"
	"strconv"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/simtest"
)

// ports gives each Deployment a port of its own, in a ConfigMap. The bug: it keeps the next port in memory. After a
// restart it begins anew, and gives the same port twice.
type ports struct {
	client.Client
	mended bool
	next   int
}

func (c *ports) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	var app appsv1.Deployment
	if err := c.Get(ctx, r.NamespacedName, &app); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var given corev1.ConfigMapList
	if err := c.List(ctx, &given, client.InNamespace(r.Namespace)); err != nil {
		return ctrl.Result{}, err
	}
	taken := map[string]bool{}
	for _, m := range given.Items {
		if m.Name == r.Name {
			return ctrl.Result{}, nil
		}
		taken[m.Data["port"]] = true
	}
	port := c.next
	c.next++
	if c.mended {
		for port = 0; taken[strconv.Itoa(port)]; port++ {
		}
	}
	return ctrl.Result{}, client.IgnoreAlreadyExists(c.Create(ctx, configMap(r.Name, "port", strconv.Itoa(port))))
}

func TestStateOnlyInMemory(t *testing.T) {
	Check(t, func(mended bool) simtest.Scenario {
		return simtest.Scenario{
			Build: build(&appsv1.Deployment{}, func(c client.Client) ctrl.Reconciler {
				return &ports{Client: c, mended: mended}
			}),
			Script: func(u *simtest.User) {
				u.Create(deployment("a"))
				u.Settle()
				u.Create(deployment("b"))
				u.Settle()
			},
			Matches: func(s *simtest.State) error {
				ports := map[string]string{}
				for _, m := range simtest.List[*corev1.ConfigMap](s, "default") {
					port := m.Data["port"]
					if other := ports[port]; other != "" {
						return fmt.Errorf("%s and %s both have port %s", other, m.Name, port)
					}
					ports[port] = m.Name
				}
				return nil
			},
		}
	})
}
