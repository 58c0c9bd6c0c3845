package ephemeralcluster

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/examples/operators/ci/api"
	"github.com/flyball-dev/flyball/reconcile"
)

// begin creates the job of ec, or finds the one that an earlier process created.
func (p *provisioner) begin(ctx context.Context, ec *api.EphemeralCluster) (reconcile.Result, error) {
	if err := p.o.validate(ec); err != nil {
		ec.Status.Phase = api.Failed
		set(ec, api.ProwJobCreating, false, api.ValidationFailureReason, err.Error())
		return reconcile.Result{}, reconcile.Terminal(err)
	}
	jobs, err := p.jobsOf(ctx, ec)
	if err != nil {
		return reconcile.Result{}, err
	}
	if len(jobs) > 1 {
		err := fmt.Errorf("several ProwJobs are bound: %s", strings.Join(names(jobs), ", "))
		ec.Status.Phase = api.Failed
		set(ec, api.ProwJobCreating, false, api.TooManyProwJobsBoundReason, err.Error())
		return reconcile.Result{}, reconcile.Terminal(err)
	}
	if len(jobs) == 1 {
		if err := p.addFinalizer(ctx, ec); err != nil {
			return reconcile.Result{}, err
		}
		return p.bind(ec, &jobs[0]), nil
	}
	if life := p.o.lifeOf(ec, time.Now()); life.over() { // no process was running to make it in time
		ec.Status.Phase = api.Failed
		set(ec, api.ProwJobCreating, false, api.TimeToLiveOverReason, life.String())
		return reconcile.Result{}, nil
	}
	job, err := p.o.jobFor(ec)
	if err != nil {
		ec.Status.Phase = api.Failed
		set(ec, api.ProwJobCreating, true, api.CIOperatorJobsGenerateFailureReason, err.Error())
		return reconcile.Result{}, reconcile.Terminal(err)
	}
	if err := p.addFinalizer(ctx, ec); err != nil { // before there is something to finalize
		return reconcile.Result{}, err
	}
	if err := p.create(ctx, job); err != nil {
		set(ec, api.ProwJobCreating, true, api.CIOperatorJobsGenerateFailureReason, err.Error())
		return reconcile.Result{}, err
	}
	klog.FromContext(ctx).Info("Created ProwJob", "prowJob", klog.KObj(job))
	return p.bind(ec, job), nil
}

// create creates the job, unless it exists: the cache of a process that has just started may not have it yet.
func (p *provisioner) create(ctx context.Context, job *api.ProwJob) error {
	err := p.hub.Create(ctx, job)
	if apierrors.IsAlreadyExists(err) {
		err = p.hub.Get(ctx, client.ObjectKeyFromObject(job), job, client.Live)
	}
	if err != nil {
		return fmt.Errorf("create ProwJob: %w", err)
	}
	return nil
}

func (p *provisioner) bind(ec *api.EphemeralCluster, job *api.ProwJob) reconcile.Result {
	ec.Status.ProwJobID, ec.Status.ProwJobURL, ec.Status.Phase = job.Name, job.Status.URL, api.Provisioning
	set(ec, api.ProwJobCreating, false, api.ProwJobCreatedReason, "ProwJob has been properly created")
	return reconcile.Result{RequeueAfter: p.o.Polling}
}

// jobsOf returns the jobs that run for ec, without those for an earlier EphemeralCluster of the same name.
func (p *provisioner) jobsOf(ctx context.Context, ec *api.EphemeralCluster) (jobs []api.ProwJob, err error) {
	var list api.ProwJobList
	if err := p.hub.List(ctx, &list, client.InNamespace(JobNamespace),
		client.MatchingLabels{api.EphemeralClusterLabel: ec.Name}); err != nil {
		return nil, fmt.Errorf("list ProwJobs: %w", err)
	}
	for _, job := range list.Items {
		if uid := job.Annotations[uidAnnotation]; uid == "" || uid == string(ec.UID) {
			jobs = append(jobs, job)
		}
	}
	return jobs, nil
}

func names(jobs []api.ProwJob) (out []string) {
	for _, job := range jobs {
		out = append(out, job.Name)
	}
	return out
}
