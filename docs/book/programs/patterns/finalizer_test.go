package patterns

import (
	"context"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

const finalizer = "book.flyball.dev/domain"

// A nameServer is outside of the cluster. Nobody but the controller removes what the controller has set.
type nameServer interface {
	Set(domain, site string)
	Remove(site string) error
}

// forgetful sets names, and removes them when a site is gone. It never hears of a site that went while it was down.
type forgetful struct {
	client.Client
	names nameServer
}

func (f *forgetful) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	var site Site
	if err := f.Get(ctx, r.NamespacedName, &site); client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	} else if err != nil {
		return ctrl.Result{}, f.names.Remove(r.Name)
	}
	f.names.Set(site.Spec.Domain, site.Name)
	return ctrl.Result{}, nil
}

// careful keeps a site from going before its name has gone.
type careful struct {
	client.Client
	names nameServer
}

func (c *careful) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	var site Site
	if err := c.Get(ctx, r.NamespacedName, &site); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	deleting, err := controllerutil.Finalize(ctx, c, &site, finalizer, func(context.Context) error {
		return c.names.Remove(site.Name)
	})
	if deleting || err != nil {
		return ctrl.Result{}, err
	}
	c.names.Set(site.Spec.Domain, site.Name)
	return ctrl.Result{}, nil
}
