package patterns

import (
	"context"
	"errors"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/conditions"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

// timeless says that a site is ready, and not which version of it.
type timeless struct{ client.Client }

func (p *timeless) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	var site Site
	if err := p.Get(ctx, r.NamespacedName, &site); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if err := upload(ctx); err != nil {
		return ctrl.Result{}, err
	}
	conditions.Set(&site.Status.Conditions, 0, metav1.Condition{
		Type: conditions.Ready, Status: metav1.ConditionTrue, Reason: "Uploaded",
	})
	return ctrl.Result{}, p.Status().Update(ctx, &site)
}

// observing says what it has seen, before it works and after.
type observing struct{ client.Client }

func (p *observing) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	var site Site
	if err := p.Get(ctx, r.NamespacedName, &site); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	status, err := controllerutil.NewPatchHelper(p, &site)
	if err != nil {
		return ctrl.Result{}, err
	}
	err = upload(ctx)
	state, reason, message := conditions.IsReady, "Uploaded", ""
	if err != nil {
		state, reason, message = conditions.IsReconciling, "UploadFailed", err.Error()
	}
	site.Status.ObservedGeneration = site.Generation
	conditions.SetState(&site.Status.Conditions, site.Generation, state, reason, message)
	return ctrl.Result{}, errors.Join(err, status.Patch(ctx, &site))
}

// upload takes a while.
func upload(ctx context.Context) error {
	select {
	case <-time.After(5 * time.Second):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
