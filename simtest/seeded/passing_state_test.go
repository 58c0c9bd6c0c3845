package seeded

import (
	"context"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/simtest"
)

// announcer makes a ConfigMap once a Pod has started. The bug: it waits for the phase Running. A Pod that has ended
// before it looks is never announced.
//
// Source: instaclustr/cassandra-operator#398 waited to see a Pod that is being deleted, and missed it.
type announcer struct {
	client.Client
	mended bool
}

func (c *announcer) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	var pod corev1.Pod
	if err := c.Get(ctx, r.NamespacedName, &pod); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	started := pod.Status.Phase == corev1.PodRunning
	if c.mended {
		started = started || pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
	}
	if !started {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, client.IgnoreAlreadyExists(c.Create(ctx, configMap(r.Name)))
}

func TestStateSeenOnlyInPassing(t *testing.T) {
	phase := func(u *simtest.User, phase corev1.PodPhase) {
		simtest.UpdateStatus(u, pod("job"), func(p *corev1.Pod) { p.Status.Phase = phase })
	}
	Check(t, func(mended bool) simtest.Scenario {
		return simtest.Scenario{
			Build: build(&corev1.Pod{}, func(c client.Client) ctrl.Reconciler { return &announcer{c, mended} }),
			Script: func(u *simtest.User) {
				u.Create(pod("job"))
				u.Settle()
				phase(u, corev1.PodRunning)
				phase(u, corev1.PodSucceeded)
				u.Settle()
			},
		}
	})
}
