package patterns

import (
	"context"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

// eventCounter counts the pages of a site by their events. Its handler calls added for each new page.
type eventCounter struct {
	client.Client
	site client.ObjectKey
}

func (c *eventCounter) added(ctx context.Context) error {
	var site Site
	if err := c.Get(ctx, c.site, &site); err != nil {
		return err
	}
	site.Status.Pages++
	return c.Status().Update(ctx, &site)
}

// levelCounter counts the pages that there are.
type levelCounter struct{ client.Client }

func (c *levelCounter) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	var site Site
	if err := c.Get(ctx, r.NamespacedName, &site); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	var pages corev1.ConfigMapList
	if err := c.List(ctx, &pages, client.InNamespace(r.Namespace), client.MatchingLabels{"site": r.Name}); err != nil {
		return ctrl.Result{}, err
	}
	if site.Status.Pages == len(pages.Items) {
		return ctrl.Result{}, nil
	}
	site.Status.Pages = len(pages.Items)
	return ctrl.Result{}, c.Status().Update(ctx, &site)
}
