package seeded

import (
	"context"
	"testing"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/flyball-dev/flyball/simtest"
	"github.com/flyball-dev/flyball/simtest/seeded"
)

// backups starts a Job for each ConfigMap, and writes the name of the Job into the ConfigMap. The bug: the API server
// makes up the name. If the answer to the create is lost, nobody knows the name, and the retry starts another Job. The
// mended one chooses the name itself, so the retry finds the Job.
type backups struct {
	client.Client
	mended bool
}

func (c *backups) Reconcile(ctx context.Context, r ctrl.Request) (ctrl.Result, error) {
	var order corev1.ConfigMap
	if err := c.Get(ctx, r.NamespacedName, &order); err != nil || order.Data["job"] != "" {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	job := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: r.Namespace, GenerateName: r.Name + "-"}}
	if c.mended {
		job.Name = r.Name + "-backup"
	}
	_, job.Spec.Template = selected(r.Name)
	job.Spec.Template.Spec.RestartPolicy = corev1.RestartPolicyNever
	if err := c.Create(ctx, job); err != nil && !(c.mended && apierrors.IsAlreadyExists(err)) {
		return ctrl.Result{}, err
	}
	order.Data = map[string]string{"job": job.Name}
	return ctrl.Result{}, c.Update(ctx, &order)
}

func TestGeneratedNameAfterLostAnswer(t *testing.T) {
	seeded.Check(t, func(mended bool) simtest.Scenario {
		return simtest.Scenario{
			Build: build(func(mgr ctrl.Manager) error {
				return ctrl.NewControllerManagedBy(mgr).For(&corev1.ConfigMap{}).
					Complete(&backups{mgr.GetClient(), mended})
			}),
			Script: func(u *simtest.User) {
				u.Create(configMap("db"))
				u.Settle()
			},
		}
	})
}
