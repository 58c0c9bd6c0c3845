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

// jobOwner is the index of Jobs by the CronJob that controls them.
const jobOwner = ".metadata.controller"

// Reconciler reconciles CronJobs.
type Reconciler struct{ client.Client }

// SetupWithManager makes the controller: it hears of CronJobs, and of the Jobs that they own.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr *ctrl.Manager) error {
	if err := mgr.GetFieldIndexer().IndexField(ctx, &batchv1.Job{}, jobOwner, ownerOf); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		For(&CronJob{}).
		Owns(&batchv1.Job{}).
		Named("cronjob").
		Complete(r)
}

// ownerOf is the index function: the name of the CronJob, and nothing for the Jobs of others, those of Kubernetes' CronJobs too.
func ownerOf(obj client.Object) []string {
	owner := metav1.GetControllerOf(obj)
	if owner == nil || owner.APIVersion != groupVersion.String() || owner.Kind != "CronJob" {
		return nil
	}
	return []string{owner.Name}
}

// Reconcile implements ctrl.Reconciler.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	// 1. The CronJob.
	var cron CronJob
	if err := r.Get(ctx, request.NamespacedName, &cron); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	// 2. Its Jobs, and the status that follows from them.
	var list batchv1.JobList
	if err := r.List(ctx, &list, client.InNamespace(request.Namespace), client.MatchingFields{jobOwner: request.Name}); err != nil {
		return ctrl.Result{}, fmt.Errorf("list jobs: %w", err)
	}
	all := sortJobs(list.Items)
	if err := r.updateStatus(ctx, &cron, all); err != nil {
		return ctrl.Result{}, fmt.Errorf("update status: %w", err)
	}
	// 3. The history.
	if err := r.cleanUp(ctx, &cron, all); err != nil {
		return ctrl.Result{}, fmt.Errorf("clean up: %w", err)
	}
	// 4. A suspended one waits for its next change. So does one that goes.
	if cron.Spec.Suspend || cron.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	// 5. The run that is due.
	schedule, err := ParseSchedule(cron.Spec.Schedule)
	if err != nil {
		return ctrl.Result{}, reconcile.Terminal(err)
	}
	now := time.Now()
	missed, next, err := cron.due(schedule, now)
	if err != nil {
		return ctrl.Result{}, reconcile.Terminal(err)
	}
	// 6. Its Job, if it may begin.
	if !missed.IsZero() && !cron.tooLate(missed, now) {
		if err := r.start(ctx, &cron, all, missed); err != nil {
			return ctrl.Result{}, fmt.Errorf("start the run of %s: %w", missed.Format(time.RFC3339), err)
		}
	}
	// 7. The next one.
	if next.IsZero() {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{RequeueAfter: next.Sub(now)}, nil
}

// updateStatus says which Jobs are active, and when the newest was due. That never goes back: the newest Job may be deleted.
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

// cleanUp deletes the oldest of the finished Jobs that are too many.
func (r *Reconciler) cleanUp(ctx context.Context, cron *CronJob, all jobs) error {
	var failed []error
	for _, job := range append(surplus(all.successful, cron.Spec.SuccessfulJobsHistoryLimit), surplus(all.failed, cron.Spec.FailedJobsHistoryLimit)...) {
		failed = append(failed, r.remove(ctx, job))
	}
	return errors.Join(failed...)
}

// remove deletes a Job, and its Pods after it.
func (r *Reconciler) remove(ctx context.Context, job *batchv1.Job) error {
	return client.IgnoreNotFound(r.Delete(ctx, job, client.OnlyThis(job), client.PropagationPolicy(metav1.DeletePropagationBackground)))
}

// start makes the Job of a run, as the concurrency policy allows.
func (r *Reconciler) start(ctx context.Context, cron *CronJob, all jobs, run time.Time) error {
	if len(all.active) > 0 {
		switch cron.Spec.ConcurrencyPolicy {
		case ForbidConcurrent:
			ctrl.LoggerFrom(ctx).V(2).Info("Run waits for the one before", "active", len(all.active))
			return nil // The end of the active Job wakes us.
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
