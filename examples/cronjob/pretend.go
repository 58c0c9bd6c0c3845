package main

import (
	"context"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/manager/ctrl"
)

// pretender completes Jobs some time after their creation, as if their Pods had run. It stands in for Kubernetes' Job
// controller on clusters without one, such as "flyball serve".
type pretender struct {
	client.Client
	// after is how long a Job takes.
	after time.Duration
}

// SetupWithManager builds the controller.
func (p *pretender) SetupWithManager(mgr ctrl.Manager) error {
	return ctrl.NewControllerManagedBy(mgr).For(&batchv1.Job{}).Named("pretended-jobs").Complete(p)
}

// Reconcile implements ctrl.Reconciler.
func (p *pretender) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var job batchv1.Job
	if err := p.Get(ctx, request.NamespacedName, &job); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if outcomeOf(&job) != "" || job.DeletionTimestamp != nil {
		return ctrl.Result{}, nil
	}
	now := metav1.Now()
	if left := job.CreationTimestamp.Add(p.after).Sub(now.Time); left > 0 {
		return ctrl.Result{RequeueAfter: left}, nil
	}
	job.Status.StartTime, job.Status.CompletionTime, job.Status.Succeeded = &job.CreationTimestamp, &now, 1
	for _, c := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
		job.Status.Conditions = append(job.Status.Conditions, batchv1.JobCondition{
			Type: c, Status: corev1.ConditionTrue, Reason: "Pretended", Message: "No Pod ran.", LastProbeTime: now,
			LastTransitionTime: now,
		})
	}
	return ctrl.Result{}, p.Status().Update(ctx, &job)
}
