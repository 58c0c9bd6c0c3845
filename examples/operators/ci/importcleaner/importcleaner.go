package importcleaner

import (
	"context"
	"time"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/examples/operators/ci/fleet"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

// Name is the controller's name, in the manager of each cluster.
const Name = "test-image-import-cleaner"

// MaxAge is the age at which an import is deleted.
const MaxAge = 7 * 24 * time.Hour

const workers = 10

type cleaner struct{ client.Client }

// Add adds the controller to a cluster's manager.
func Add(c *fleet.Cluster) error {
	return ctrl.NewControllerManagedBy(c.Manager).Named(Name).For(&api.TestImageStreamTagImport{}).
		WithOptions(ctrl.ControllerOptions{Workers: workers}).Complete(&cleaner{c.Client})
}

// Reconcile deletes an import that is old enough, or waits until it is.
func (c *cleaner) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	i := &api.TestImageStreamTagImport{}
	if err := c.Get(ctx, r.NamespacedName, i, client.ReadOnly); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if left := MaxAge - time.Since(i.CreationTimestamp.Time); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	if i.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	ctrl.LoggerFrom(ctx).Info("Deleting old import", "created", i.CreationTimestamp.Time)
	return ctrl.Result{}, client.IgnoreNotFound(c.Delete(ctx, i, client.OnlyThis(i)))
}
