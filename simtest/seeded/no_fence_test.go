package seeded

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/manager/leader"
	"github.com/flyball-dev/flyball/simtest"
)

// pairs makes two ConfigMaps for each Deployment.
type pairs struct{ client.Client }

func (c *pairs) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	var app appsv1.Deployment
	if err := c.Get(ctx, r.NamespacedName, &app); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	for _, name := range []string{r.Name + "-1", r.Name + "-2"} {
		if err := client.IgnoreAlreadyExists(c.Create(ctx, configMap(name))); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, nil
}

// elected returns a manager that works while it holds a lease. The bug: it looks at the lease only before it begins. A
// process that cannot renew the lease goes on, beside the one that has got it. The mended one leaves the lease to the
// manager.
//
// Source: kubernetes/kubernetes#139504 and KEP-5366 are about work that outlives the lease.
func elected(e *simtest.Env, mended bool) (simtest.Program, error) {
	var o ctrl.Options
	me := fmt.Sprintf("process-%d", e.Incarnation())
	if mended {
		o.LeaderElection = manager.LeaderElection{Enabled: true, Namespace: "default", Name: "pairs", Identity: me}
	}
	mgr, err := ctrl.NewManager(e.Config(), o)
	if err != nil {
		return nil, err
	}
	err = ctrl.NewControllerManagedBy(mgr).For(&appsv1.Deployment{}).Complete(&pairs{mgr.GetClient()})
	if mended || err != nil {
		return mgr, err
	}
	lock, err := leader.NewLeaseLock(e.Config(), metav1.ObjectMeta{Namespace: "default", Name: "pairs"}, me, nil)
	if err != nil {
		return nil, err
	}
	elector, err := leader.New(lock, leader.Options{})
	return simtest.ProgramFunc(func(ctx context.Context) error {
		return elector.Run(ctx, func(context.Context) error { return mgr.Run(ctx) })
	}), err
}

func TestLeaderWithoutFence(t *testing.T) {
	Check(t, func(mended bool) simtest.Scenario {
		return simtest.Scenario{
			Build: func(e *simtest.Env) (simtest.Program, error) { return elected(e, mended) },
			Script: func(u *simtest.User) {
				u.Create(deployment("web"))
				u.Settle()
			},
			Leases: true,
		}
	})
}
