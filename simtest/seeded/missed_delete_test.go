package seeded

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/simtest"
)

// members keeps the names of all Pods in a ConfigMap. The bug: it takes out a name only when it hears that the Pod was
// deleted. If it is down at that moment, the name stays for ever.
//
// Source: events that are not seen are the third pattern of Sieve (OSDI 2022).
type members struct {
	client.Client
	mended bool
}

func (c *members) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	var pods corev1.PodList
	if err := c.List(ctx, &pods, client.InNamespace(r.Namespace)); err != nil {
		return ctrl.Result{}, err
	}
	present := map[string]string{}
	for _, p := range pods.Items {
		present[p.Name] = "member"
	}
	list := configMap("members")
	_, err := ctrl.CreateOrUpdate(ctx, c, list, func() error {
		switch {
		case c.mended || list.Data == nil:
			list.Data = present
		case present[r.Name] == "":
			delete(list.Data, r.Name)
		default:
			list.Data[r.Name] = "member"
		}
		return nil
	})
	return ctrl.Result{}, err
}

func TestMissedDelete(t *testing.T) {
	Check(t, func(mended bool) simtest.Scenario {
		return simtest.Scenario{
			Build: build(&corev1.Pod{}, func(c client.Client) ctrl.Reconciler { return &members{c, mended} }),
			Script: func(u *simtest.User) {
				u.Create(pod("a"))
				u.Create(pod("b"))
				u.Settle()
				u.Create(pod("c"))
				u.Delete(pod("a"))
				u.Settle()
			},
		}
	})
}
