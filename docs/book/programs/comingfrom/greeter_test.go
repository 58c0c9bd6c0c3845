// Package comingfrom has the controller of docs/book/c-coming-from.md twice: as one writes it with client-go, and with
// Flyball.
package comingfrom

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

// A flyballGreeter writes a greeting into each ConfigMap that asks for one.
type flyballGreeter struct{ client.Client }

func runFlyball(ctx context.Context, config *rest.Config) error {
	m, err := ctrl.NewManager(config, ctrl.Options{})
	if err != nil {
		return err
	}
	g := &flyballGreeter{m.GetClient()}
	if err := ctrl.NewControllerManagedBy(m).For(&corev1.ConfigMap{}).Named("greeter").Complete(g); err != nil {
		return err
	}
	return m.Run(ctx)
}

func (g *flyballGreeter) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	var cm corev1.ConfigMap
	if err := g.Get(ctx, r.NamespacedName, &cm); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if cm.Labels["greet"] != "yes" || cm.Data["greeting"] != "" {
		return ctrl.Result{}, nil
	}
	cm.Data = map[string]string{"greeting": "hello"}
	return ctrl.Result{}, g.Update(ctx, &cm)
}
