package seeded

import (
	"context"
	"slices"
	"strconv"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/utils/ptr"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/simtest"
)

// rollout copies the generation of each Deployment to a ConfigMap. The bug: it marks the generation as observed before
// it has done the work. If it dies in between, the next process believes that there is nothing to do. The mended one
// does the work first. It also does it when the generation is observed, because a process that started with an old
// cache may have undone it.
//
// Source: a crash between two writes is the first pattern of Sieve (OSDI 2022).
type rollout struct {
	client.Client
	mended bool
}

func (c *rollout) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	var app appsv1.Deployment
	if err := c.Get(ctx, r.NamespacedName, &app); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if app.Status.ObservedGeneration == app.Generation && !c.mended {
		return ctrl.Result{}, nil
	}
	steps := []func(context.Context, *appsv1.Deployment) error{c.observe, c.work}
	if c.mended {
		slices.Reverse(steps)
	}
	for _, step := range steps {
		if err := step(ctx, &app); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, nil
}

func (c *rollout) observe(ctx context.Context, app *appsv1.Deployment) error {
	if app.Status.ObservedGeneration == app.Generation {
		return nil
	}
	app.Status.ObservedGeneration = app.Generation
	return c.Status().Update(ctx, app)
}

func (c *rollout) work(ctx context.Context, app *appsv1.Deployment) error {
	plan := configMap(app.Name)
	_, err := ctrl.CreateOrUpdate(ctx, c, plan, func() error {
		plan.Data = map[string]string{"replicas": strconv.Itoa(int(*app.Spec.Replicas))}
		return nil
	})
	return err
}

func TestObservedGenerationBeforeWork(t *testing.T) {
	Check(t, func(mended bool) simtest.Scenario {
		return simtest.Scenario{
			Build: build(&appsv1.Deployment{}, func(c client.Client) ctrl.Reconciler { return &rollout{c, mended} }),
			Script: func(u *simtest.User) {
				u.Create(deployment("web"))
				u.Settle()
				simtest.Update(u, deployment("web"), func(d *appsv1.Deployment) { d.Spec.Replicas = ptr.To[int32](3) })
				u.Settle()
			},
		}
	})
}
