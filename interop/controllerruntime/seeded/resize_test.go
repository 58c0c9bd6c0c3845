package seeded

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flyball-dev/flyball/simtest"
	"github.com/flyball-dev/flyball/simtest/seeded"
)

// disks keeps a StatefulSet and a PersistentVolumeClaim of the size that a ConfigMap asks for. The template of a
// StatefulSet cannot be changed, so a new size means to delete the StatefulSet, to resize the claim, and to create the
// StatefulSet again. The bug: the size of the old StatefulSet tells whether the claim must be resized. If it dies after
// the delete, the next process finds no StatefulSet, creates one, and never resizes the claim. The mended one looks at
// the claim.
//
// Source: rabbitmq/cluster-operator#782, mended by #838.
type disks struct {
	client.Client
	api    client.Reader
	mended bool
}

func (c *disks) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	var order corev1.ConfigMap
	if err := c.Get(ctx, r.NamespacedName, &order); err != nil || order.Data["size"] == "" {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	claim, set := newClaim(r.Name, order.Data["size"]), statefulSet(r.Name, 1)
	set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{*claim}
	if err := client.IgnoreAlreadyExists(c.Create(ctx, claim.DeepCopy())); err != nil {
		return ctrl.Result{}, err
	}
	var old appsv1.StatefulSet
	err := c.api.Get(ctx, r.NamespacedName, &old)
	if client.IgnoreNotFound(err) != nil {
		return ctrl.Result{}, err
	}
	resized := err == nil && sizeOf(&old.Spec.VolumeClaimTemplates[0]) != order.Data["size"]
	if resized {
		if err := c.Delete(ctx, &old); err != nil {
			return ctrl.Result{}, err
		}
	}
	if resized || c.mended {
		if err := c.resize(ctx, claim); err != nil {
			return ctrl.Result{}, err
		}
	}
	return ctrl.Result{}, client.IgnoreAlreadyExists(c.Create(ctx, set))
}

func (c *disks) resize(ctx context.Context, wanted *corev1.PersistentVolumeClaim) error {
	var claim corev1.PersistentVolumeClaim
	err := c.api.Get(ctx, client.ObjectKeyFromObject(wanted), &claim)
	if err != nil || sizeOf(&claim) == sizeOf(wanted) {
		return err
	}
	claim.Spec.Resources = wanted.Spec.Resources
	return c.Update(ctx, &claim)
}

func sizeOf(claim *corev1.PersistentVolumeClaim) string {
	return claim.Spec.Resources.Requests.Storage().String()
}

func TestResizeAfterCrash(t *testing.T) {
	seeded.Check(t, func(mended bool) simtest.Scenario {
		return simtest.Scenario{
			Build: build(func(mgr ctrl.Manager) error {
				return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).
					Complete(&disks{mgr.GetClient(), mgr.GetAPIReader(), mended})
			}),
			Script: func(u *simtest.User) {
				u.Create(configMap("db", "size", "10Gi"))
				u.Settle()
				simtest.UpdateStatus(u, newClaim("db", "10Gi"), func(c *corev1.PersistentVolumeClaim) {
					c.Status.Phase = corev1.ClaimBound // as a cluster does; a claim can be resized only then
				})
				u.Settle()
				simtest.Update(u, configMap("db"), func(m *corev1.ConfigMap) { m.Data["size"] = "15Gi" })
				u.Settle()
			},
		}
	})
}
