package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/reference"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager/ctrl"
	"github.com/flyball-dev/flyball/reconcile"
)

// jobOwner is the index of Jobs by the UID of the CronJob that controls them. By its name, a new CronJob would also
// find the Jobs of one that is gone, until they are collected, and take the last of them for its own last run.
const jobOwner = ".metadata.controller"

// +kubebuilder:rbac:groups=batch.examples.flyball.dev,resources=cronjobs,verbs=get;list;watch
// +kubebuilder:rbac:groups=batch.examples.flyball.dev,resources=cronjobs/status,verbs=update
// +kubebuilder:rbac:groups=batch,resources=jobs,verbs=list;watch;create;delete
// +kubebuilder:rbac:groups="",resources=namespaces,resourceNames=kube-system,verbs=get

// Reconciler reconciles CronJobs.
type Reconciler struct{ client.Client }

// SetupWithManager builds the controller. It watches CronJobs, and the Jobs that they own.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &batchv1.Job{}, jobOwner, ownerOf); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&CronJob{}).
		Owns(&batchv1.Job{}).
		Named("cronjob").
		Complete(r)
}

// ownerOf is the index function. It returns the UID of the CronJob that controls a Job, and nothing for other Jobs,
// including those of Kubernetes' own CronJobs.
func ownerOf(obj client.Object) []string {
	owner := metav1.GetControllerOf(obj)
	if owner == nil || owner.APIVersion != groupVersion.String() || owner.Kind != "CronJob" {
		return nil
	}
	return []string{string(owner.UID)}
}

// Reconcile implements ctrl.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	// 1. Load the CronJob.
	var cron CronJob
	if err := r.Get(ctx, request.NamespacedName, &cron); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	// 2. List its Jobs, and update the status.
	var list batchv1.JobList
	if err := r.List(ctx, &list, client.InNamespace(request.Namespace),
		client.MatchingFields{jobOwner: string(cron.UID)}); err != nil {
		return ctrl.Result{}, fmt.Errorf("list jobs: %w", err)
	}
	all := sortJobs(list.Items)
	if err := r.updateStatus(ctx, &cron, all); err != nil {
		return ctrl.Result{}, fmt.Errorf("update status: %w", err)
	}
	// 3. Clean up the history.
	if err := r.cleanUp(ctx, &cron, all); err != nil {
		return ctrl.Result{}, fmt.Errorf("clean up: %w", err)
	}
	// 4. Stop if the CronJob is suspended or being deleted. Its next change triggers another reconcile.
	if cron.Spec.Suspend || cron.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	// 5. Find the run that is due.
	schedule, err := ParseSchedule(cron.Spec.Schedule)
	if err != nil {
		return ctrl.Result{}, reconcile.Terminal(err)
	}
	now := time.Now()
	missed, next, err := cron.due(schedule, now)
	if err != nil {
		return ctrl.Result{}, reconcile.Terminal(err)
	}
	// 6. Start its Job, if it may still begin.
	if !missed.IsZero() && !cron.tooLate(missed, now) {
		if err := r.start(ctx, &cron, all, missed); err != nil {
			return ctrl.Result{}, fmt.Errorf("start the run of %s: %w", missed.Format(time.RFC3339), err)
		}
	}
	// 7. Requeue for the next run.
	if next.IsZero() {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{RequeueAfter: next.Sub(now)}, nil
}

// updateStatus records which Jobs are active, and the scheduled time of the newest. That time never goes back, even if
// the newest Job is deleted.
func (r *Reconciler) updateStatus(ctx context.Context, cron *CronJob, all jobs) error {
	status := CronJobStatus{LastScheduleTime: cron.Status.LastScheduleTime}
	if all.newest != nil && (status.LastScheduleTime == nil || status.LastScheduleTime.Before(all.newest)) {
		status.LastScheduleTime = all.newest
	}
	for _, job := range all.active {
		ref, err := reference.GetReference(r.Scheme(), job)
		if err != nil {
			return err
		}
		status.Active = append(status.Active, corev1.ObjectReference{
			APIVersion: ref.APIVersion, Kind: ref.Kind, Namespace: ref.Namespace, Name: ref.Name, UID: ref.UID,
		})
	}
	if equality.Semantic.DeepEqual(cron.Status, status) {
		return nil
	}
	cron.Status = status
	return r.Status().Update(ctx, cron)
}

// cleanUp deletes the oldest finished Jobs beyond the history limits.
func (r *Reconciler) cleanUp(ctx context.Context, cron *CronJob, all jobs) error {
	var failed []error
	for _, job := range append(surplus(all.successful, cron.Spec.SuccessfulJobsHistoryLimit),
		surplus(all.failed, cron.Spec.FailedJobsHistoryLimit)...) {
		failed = append(failed, r.remove(ctx, job))
	}
	return errors.Join(failed...)
}

// remove deletes a Job, and its Pods in the background.
func (r *Reconciler) remove(ctx context.Context, job *batchv1.Job) error {
	return client.IgnoreNotFound(
		r.Delete(ctx, job, client.OnlyThis(job), client.PropagationPolicy(metav1.DeletePropagationBackground)),
	)
}

// isLatest asks the server whether cron is the latest version. The cache of a process that has just started may be old.
// By that version a run may be due that has taken place, and whose Job has been cleaned up: nothing would keep it from
// taking place again.
func (r *Reconciler) isLatest(ctx context.Context, cron *CronJob) (bool, error) {
	var latest CronJob
	err := r.Get(ctx, client.ObjectKeyFromObject(cron), &latest, client.Live)
	return err == nil && latest.ResourceVersion == cron.ResourceVersion, client.IgnoreNotFound(err)
}

// start creates the Job of a run, if the concurrency policy allows it.
func (r *Reconciler) start(ctx context.Context, cron *CronJob, all jobs, run time.Time) error {
	if latest, err := r.isLatest(ctx, cron); !latest || err != nil {
		return err // the event of the latest version triggers another reconcile
	}
	if len(all.active) > 0 {
		switch cron.Spec.ConcurrencyPolicy {
		case ForbidConcurrent:
			ctrl.LoggerFrom(ctx).V(2).Info("Run waits for the one before", "active", len(all.active))
			return nil // the end of the active Job triggers another reconcile
		case ReplaceConcurrent:
			for _, job := range all.active {
				if err := r.remove(ctx, job); err != nil {
					return err
				}
			}
		}
	}
	job := cron.jobFor(run)
	if err := ctrl.SetControllerReference(cron, job, r.Scheme()); err != nil {
		return err
	}
	ctrl.LoggerFrom(ctx).Info("Starting run", "job", job.Name)
	return r.Create(ctx, job)
}
