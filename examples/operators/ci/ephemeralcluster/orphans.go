package ephemeralcluster

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/reconcile"
)

// orphans reconciles ProwJobs whose EphemeralCluster is gone although it had a finalizer, because somebody removed the
// finalizer by hand.
type orphans struct{ *provisioner }

// Reconcile implements reconcile.Reconciler.
func (o *orphans) Reconcile(ctx context.Context, r reconcile.Request) (reconcile.Result, error) {
	job := &api.ProwJob{}
	if err := o.hub.Get(ctx, r.NamespacedName, job); err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !isOurs(job) || job.Complete() {
		return reconcile.Result{}, nil
	}
	gone, err := o.ownerIsGone(ctx, job)
	if !gone || err != nil {
		return reconcile.Result{}, err
	}
	if o.builds[job.Spec.Cluster] == nil {
		return reconcile.Result{},
			reconcile.Terminal(fmt.Errorf("there is no client for build cluster %q", job.Spec.Cluster))
	}
	_, err = o.endJob(ctx, job, "Ephemeral Cluster not found: ")
	return reconcile.Result{}, err
}

// ownerIsGone asks the server rather than the cache, which may not have the EphemeralCluster yet.
func (o *orphans) ownerIsGone(ctx context.Context, job *api.ProwJob) (bool, error) {
	ec, key := &api.EphemeralCluster{},
		client.ObjectKey{Namespace: Namespace, Name: job.Labels[api.EphemeralClusterLabel]}
	err := o.hub.Get(ctx, key, ec)
	if apierrors.IsNotFound(err) {
		err = o.hub.Get(ctx, key, ec, client.Live)
	}
	switch uid := job.Annotations[uidAnnotation]; {
	case apierrors.IsNotFound(err):
		return true, nil
	case err != nil:
		return false, fmt.Errorf("get EphemeralCluster %s: %w", key.Name, err)
	default:
		return uid != "" && uid != string(ec.UID), nil // another object has its name
	}
}
