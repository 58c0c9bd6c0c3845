package ephemeralcluster

import (
	"context"

	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/reconcile"
)

// end handles the deletion of ec. It makes the job take its cluster down, and removes the finalizer when that is done
// or impossible.
func (p *provisioner) end(ctx context.Context, ec *api.EphemeralCluster) (reconcile.Result, error) {
	if !controllerutil.ContainsFinalizer(ec, api.DependentProwJobFinalizer) {
		return reconcile.Result{}, nil
	}
	jobs, err := p.boundJobs(ctx, ec)
	if err != nil {
		return reconcile.Result{}, err
	}
	waiting := false
	for _, job := range jobs {
		waits, err := p.endJob(ctx, &job, "EphemeralCluster being deleted: ")
		if err != nil {
			return reconcile.Result{}, err
		}
		waiting = waiting || waits
	}
	if waiting {
		return reconcile.Result{RequeueAfter: p.o.Polling}, nil // in case the namespace goes without the job
	}
	klog.FromContext(ctx).V(2).Info("Nothing depends on the cluster any more")
	return reconcile.Result{}, p.removeFinalizer(ctx, ec)
}

// boundJobs returns the jobs that must end with ec: the one that it names, or else those that name it. (The process
// that created one may have died before it wrote the status.)
func (p *provisioner) boundJobs(ctx context.Context, ec *api.EphemeralCluster) ([]api.ProwJob, error) {
	if ec.Status.ProwJobID == "" {
		return p.jobsOf(ctx, ec)
	}
	job, err := p.job(ctx, ec.Status.ProwJobID)
	if job == nil || err != nil {
		return nil, err
	}
	return []api.ProwJob{*job}, nil
}

// endJob tells the job in the build cluster to end, or aborts it if it cannot be told. waits means that the job is
// still running.
func (p *provisioner) endJob(ctx context.Context, job *api.ProwJob, why string) (waits bool, err error) {
	if job.Complete() {
		return false, nil
	}
	build := p.builds[job.Spec.Cluster]
	if build == nil {
		return false, p.abort(ctx, job, why+"there is no client for the build cluster")
	}
	namespace, err := namespaceOf(ctx, build, job)
	if err == nil && namespace == "" { // ask the server before believing the cache: an abort cannot be undone
		namespace, err = namespaceOf(ctx, build, job, client.Live)
	}
	if err != nil {
		return true, err
	}
	if namespace == "" {
		return false, p.abort(ctx, job, why+api.NamespaceNotFoundMessage)
	}
	return true, signal(ctx, build, namespace)
}
