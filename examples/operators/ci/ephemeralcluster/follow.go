package ephemeralcluster

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/conditions"
	"github.com/flyball-dev/flyball/client/controllerutil"
	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/reconcile"
)

// follow checks the progress of ec's job, and sets the status accordingly. The caller writes the status, and then
// removes the finalizer if the status is final.
func (p *provisioner) follow(ctx context.Context, ec *api.EphemeralCluster) (reconcile.Result, error) {
	if finished(ec) {
		return reconcile.Result{}, nil
	}
	job, err := p.job(ctx, ec.Status.ProwJobID)
	if err != nil {
		return reconcile.Result{}, err
	}
	if job == nil {
		ec.Status.Phase = api.Failed
		set(ec, api.ProwJobCompleted, true, api.ProwJobFailureReason, "the ProwJob is gone")
		return reconcile.Result{}, nil
	}
	ec.Status.ProwJobURL = job.Status.URL
	set(ec, api.ProwJobCreating, false, api.ProwJobCreatedReason, "ProwJob has been properly created")
	if job.Complete() {
		complete(ec, job)
		return reconcile.Result{}, nil
	}
	build := p.builds[job.Spec.Cluster]
	if build == nil {
		err := fmt.Errorf("there is no client for build cluster %q", job.Spec.Cluster)
		if failed := p.abort(ctx, job, err.Error()); failed != nil {
			return reconcile.Result{}, failed
		}
		complete(ec, job)
		return reconcile.Result{}, reconcile.Terminal(err)
	}
	namespace, err := namespaceOf(ctx, build, job)
	if err != nil {
		return reconcile.Result{}, err
	}
	life := p.o.lifeOf(ec, time.Now())
	if ec.Spec.TearDownCluster || life.over() ||
		conditions.Is(ec.Status.Conditions, api.TestCompleted, metav1.ConditionTrue) {
		return p.tearDown(ctx, ec, build, namespace)
	}
	result, err := p.provision(ctx, ec, build, namespace)
	result.RequeueAfter = life.sooner(result.RequeueAfter)
	return result, err
}

// job returns the job of that name, or nil if it is gone. It asks the server before it believes that.
func (p *provisioner) job(ctx context.Context, name string) (*api.ProwJob, error) {
	job, key := &api.ProwJob{}, client.ObjectKey{Namespace: JobNamespace, Name: name}
	err := p.hub.Get(ctx, key, job)
	if apierrors.IsNotFound(err) {
		err = p.hub.Get(ctx, key, job, client.Live)
	}
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("get ProwJob: %w", err)
	}
	return job, nil
}

// complete sets the status for a job that has ended.
func complete(ec *api.EphemeralCluster, job *api.ProwJob) {
	if job.Status.State == api.SuccessState {
		ec.Status.Phase = api.Deprovisioned
		set(ec, api.ProwJobCompleted, true, api.ProwJobCompletedReason, "the ProwJob has succeeded")
		return
	}
	ec.Status.Phase = api.Failed
	message := "the ProwJob has ended as " + string(job.Status.State)
	if job.Status.Description != "" {
		message += ": " + job.Status.Description
	}
	set(ec, api.ProwJobCompleted, true, api.ProwJobFailureReason, message)
}

// provision copies the credentials when they exist.
func (p *provisioner) provision(ctx context.Context, ec *api.EphemeralCluster, build client.Client,
	namespace string,
) (reconcile.Result, error) {
	found, missing, err := credentialsOf(ctx, build, namespace, ec.Spec.CIOperator.Test.ClusterClaim != nil)
	if err != nil {
		return reconcile.Result{}, err
	}
	if found == nil {
		if ec.Status.Phase != api.Ready { // the job removes them itself at its end
			ec.Status.Phase = api.Provisioning
			set(ec, api.ClusterReady, false, api.SecretsFetchFailureReason, missing)
		}
		return reconcile.Result{RequeueAfter: p.o.Polling}, nil
	}
	name, err := p.keepCredentials(ctx, ec, found)
	if err != nil {
		set(ec, api.ClusterReady, false, api.SecretsFetchFailureReason, err.Error())
		return reconcile.Result{}, err
	}
	if ec.Status.Phase != api.Ready {
		klog.FromContext(ctx).Info("Cluster is ready")
	}
	ec.Status.SecretRef, ec.Status.Phase = name, api.Ready
	set(ec, api.ClusterReady, true, api.ClusterReadyReason, "")
	return reconcile.Result{}, nil // the next change is an event of the job or of ec
}

// tearDown tells the job that the cluster is no longer needed.
func (p *provisioner) tearDown(ctx context.Context, ec *api.EphemeralCluster, build client.Client,
	namespace string,
) (reconcile.Result, error) {
	if namespace == "" {
		set(ec, api.TestCompleted, false, api.CreateTestCompletedSecretFailureReason, api.NamespaceNotFoundMessage)
		return reconcile.Result{RequeueAfter: p.o.Polling}, nil
	}
	if err := signal(ctx, build, namespace); err != nil {
		set(ec, api.TestCompleted, false, api.CreateTestCompletedSecretFailureReason, err.Error())
		return reconcile.Result{}, err
	}
	ec.Status.Phase = api.Deprovisioning
	reason, message := api.TestCompletedReason, ""
	if life := p.o.lifeOf(ec, time.Now()); life.over() && !ec.Spec.TearDownCluster {
		reason, message = api.TimeToLiveOverReason, life.String()
	}
	set(ec, api.TestCompleted, true, reason, message)
	return reconcile.Result{}, nil
}

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
