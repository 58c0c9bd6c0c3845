package seeded

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"github.com/flyball-dev/flyball/simtest"
	"github.com/flyball-dev/flyball/simtest/seeded"
)

// storageFinalizer is on StatefulSets that have storage.
const storageFinalizer = "example.com/storage"

// storage keeps a PersistentVolumeClaim for each StatefulSet, and deletes it with the StatefulSet. The bug: it deletes
// by name. After a restart its cache may show an older StatefulSet of that name that is being deleted, while the claim
// belongs to the one that is there now. The mended one deletes only a claim that was made for the StatefulSet it sees.
//
// Source: instaclustr/cassandra-operator#402, datastax/cass-operator#412 and Orange-OpenSource/casskop#316.
type storage struct {
	client.Client
	api    client.Reader
	mended bool
}

func (c *storage) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	var set appsv1.StatefulSet
	if err := c.Get(ctx, r.NamespacedName, &set); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	claim := newClaim(r.Name, "1Gi")
	if !set.DeletionTimestamp.IsZero() {
		if err := c.remove(ctx, claim, &set); client.IgnoreNotFound(err) != nil {
			return ctrl.Result{}, err
		}
		if !controllerutil.RemoveFinalizer(&set, storageFinalizer) {
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, client.IgnoreNotFound(c.Update(ctx, &set))
	}
	if controllerutil.AddFinalizer(&set, storageFinalizer) {
		if err := c.Update(ctx, &set); err != nil {
			return ctrl.Result{}, err
		}
	}
	if err := ctrl.SetControllerReference(&set, claim, c.Scheme()); err != nil {
		return ctrl.Result{}, err
	}
	err := c.Create(ctx, claim)
	if !apierrors.IsAlreadyExists(err) {
		return ctrl.Result{}, err
	}
	if err := c.api.Get(ctx, client.ObjectKeyFromObject(claim), claim); err != nil {
		return ctrl.Result{}, err
	}
	if !metav1.IsControlledBy(claim, &set) {
		return ctrl.Result{}, fmt.Errorf("the claim %s belongs to another StatefulSet", claim.Name)
	}
	return ctrl.Result{}, nil
}

func (c *storage) remove(ctx context.Context, claim *corev1.PersistentVolumeClaim, set *appsv1.StatefulSet) error {
	if !c.mended {
		return c.Delete(ctx, claim)
	}
	err := c.api.Get(ctx, client.ObjectKeyFromObject(claim), claim)
	if err != nil || !metav1.IsControlledBy(claim, set) {
		return err
	}
	return c.Delete(ctx, claim, client.Preconditions{UID: &claim.UID})
}

// newClaim returns a PersistentVolumeClaim.
func newClaim(name, size string) *corev1.PersistentVolumeClaim {
	claim := &corev1.PersistentVolumeClaim{ObjectMeta: named(name)}
	claim.Spec.AccessModes = []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	claim.Spec.Resources.Requests = corev1.ResourceList{corev1.ResourceStorage: resource.MustParse(size)}
	return claim
}

func TestClaimOfFormerOwner(t *testing.T) {
	seeded.Check(t, func(mended bool) simtest.Scenario {
		return simtest.Scenario{
			Build: build(func(mgr ctrl.Manager) error {
				return ctrl.NewControllerManagedBy(mgr).For(&appsv1.StatefulSet{}).
					Complete(&storage{mgr.GetClient(), mgr.GetAPIReader(), mended})
			}),
			Script: func(u *simtest.User) {
				u.Create(statefulSet("db", 1))
				u.Settle()
				u.Delete(statefulSet("db", 1))
				u.Settle()
				u.Create(statefulSet("db", 1))
				u.Settle()
			},
		}
	})
}
