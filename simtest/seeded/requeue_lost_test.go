package seeded

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/simtest"
)

// lifetime is how long a ConfigMap with a lease lives.
const lifetime = time.Minute

// leases deletes each ConfigMap a minute after it has first seen it. The bug: only the run that notes the time asks to
// be called again. The note causes another run, which does not ask, so nobody comes back until the process starts anew.
type leases struct {
	client.Client
	mended bool
}

func (c *leases) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	var leased corev1.ConfigMap
	if err := c.Get(ctx, r.NamespacedName, &leased); err != nil || leased.Labels["leased"] == "" {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	noted, known := leased.Annotations["since"]
	if !known {
		leased.Annotations = map[string]string{"since": time.Now().Format(time.RFC3339)}
		return ctrl.Result{RequeueAfter: lifetime}, c.Update(ctx, &leased)
	}
	since, err := time.Parse(time.RFC3339, noted)
	if err != nil {
		return ctrl.Result{}, reconcile.Terminal(err)
	}
	if left := time.Until(since.Add(lifetime)); left > 0 {
		if c.mended {
			return ctrl.Result{RequeueAfter: left}, nil
		}
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(c.Delete(ctx, &leased))
}

func TestRequeueLost(t *testing.T) {
	Check(t, func(mended bool) simtest.Scenario {
		return simtest.Scenario{
			Build: build(&corev1.ConfigMap{}, func(c client.Client) ctrl.Reconciler { return &leases{c, mended} }),
			Script: func(u *simtest.User) {
				leased := configMap("leased")
				leased.Labels = map[string]string{"leased": "yes"}
				u.Create(leased)
				u.Settle()
			},
		}
	})
}
