package seeded

import (
	"context"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flyball-dev/flyball/simtest"
	"github.com/flyball-dev/flyball/simtest/seeded"
)

// replicas keeps as many Pods as a ReplicaSet asks for. The bug: it counts them in its cache. As long as the cache lags
// behind its own creates, it creates again. The mended one counts in the API server before it creates.
//
// Source: kubernetes/kubernetes#129795: the ReplicaSet controller does so when a watch is five minutes late.
type replicas struct {
	client.Client
	api    client.Reader
	mended bool
}

func (c *replicas) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	var set appsv1.ReplicaSet
	if err := c.Get(ctx, r.NamespacedName, &set); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	missing, err := c.missing(ctx, c, &set)
	if missing > 0 && c.mended {
		missing, err = c.missing(ctx, c.api, &set)
	}
	if err != nil || missing <= 0 {
		return ctrl.Result{}, err
	}
	for range missing {
		pod := &corev1.Pod{ObjectMeta: set.Spec.Template.ObjectMeta, Spec: set.Spec.Template.Spec}
		pod.Namespace, pod.GenerateName = set.Namespace, set.Name+"-"
		if err := ctrl.SetControllerReference(&set, pod, c.Scheme()); err != nil {
			return ctrl.Result{}, err
		}
		if err := c.Create(ctx, pod); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{RequeueAfter: 5 * time.Second}, nil // to see whether they have come
}

func (c *replicas) missing(ctx context.Context, from client.Reader, set *appsv1.ReplicaSet) (int, error) {
	var pods corev1.PodList
	labels := client.MatchingLabels(set.Spec.Selector.MatchLabels)
	err := from.List(ctx, &pods, client.InNamespace(set.Namespace), labels)
	return int(*set.Spec.Replicas) - len(pods.Items), err
}

func TestPodsCreatedTwice(t *testing.T) {
	seeded.Check(t, func(mended bool) simtest.Scenario {
		set := &appsv1.ReplicaSet{ObjectMeta: named("web")}
		set.Spec.Selector, set.Spec.Template = selected("web")
		return simtest.Scenario{
			Build: build(func(mgr ctrl.Manager) error {
				return ctrl.NewControllerManagedBy(mgr).For(&appsv1.ReplicaSet{}).Owns(&corev1.Pod{}).
					Complete(&replicas{mgr.GetClient(), mgr.GetAPIReader(), mended})
			}),
			Script: func(u *simtest.User) {
				u.Create(set)
				u.Settle()
			},
		}
	})
}
