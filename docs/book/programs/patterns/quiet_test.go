package patterns

import (
	"context"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

// restless counts its runs in the object.
type restless struct{ client.Client }

func (n *restless) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	var site Site
	if err := n.Get(ctx, r.NamespacedName, &site); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	site.Status.Pages++ // or the time, or anything else that differs in each run
	return ctrl.Result{}, n.Status().Update(ctx, &site)
}
