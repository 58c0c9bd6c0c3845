package main

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// groupVersion is the group and version of this CronJob. Kubernetes' own is in batch/v1.
var groupVersion = schema.GroupVersion{Group: "batch.examples.flyball.dev", Version: "v1"}

// CronJob creates Jobs at the times of a schedule.
type CronJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              CronJobSpec   `json:"spec"`
	Status            CronJobStatus `json:"status,omitempty,omitzero"`
}

// ConcurrencyPolicy decides what happens when a run is due while the previous one is active.
type ConcurrencyPolicy string

// The policies. The empty policy means Allow.
const (
	AllowConcurrent   ConcurrencyPolicy = "Allow"
	ForbidConcurrent  ConcurrencyPolicy = "Forbid"  // the run waits until the previous one has finished
	ReplaceConcurrent ConcurrencyPolicy = "Replace" // the previous run is deleted
)

// CronJobSpec is the desired state of a CronJob.
type CronJobSpec struct {
	// Schedule has the five fields of cron, in UTC; see [ParseSchedule].
	Schedule string `json:"schedule"`
	// StartingDeadlineSeconds is how late a run may begin. Nil means any time.
	StartingDeadlineSeconds *int64            `json:"startingDeadlineSeconds,omitempty"`
	ConcurrencyPolicy       ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`
	// Suspend stops further runs. Active ones continue.
	Suspend     bool                    `json:"suspend,omitempty"`
	JobTemplate batchv1.JobTemplateSpec `json:"jobTemplate"`
	// SuccessfulJobsHistoryLimit and FailedJobsHistoryLimit are how many finished Jobs are kept. Nil keeps all.
	SuccessfulJobsHistoryLimit *int32 `json:"successfulJobsHistoryLimit,omitempty"`
	FailedJobsHistoryLimit     *int32 `json:"failedJobsHistoryLimit,omitempty"`
}

// CronJobStatus is the observed state of a CronJob.
type CronJobStatus struct {
	// Active lists the Jobs that have not finished.
	Active []corev1.ObjectReference `json:"active,omitempty"`
	// LastScheduleTime is the scheduled time of the newest Job.
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`
}

// CronJobList is a list of CronJobs.
type CronJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []CronJob `json:"items"`
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// DeepCopyObject implements runtime.Object.
func (c *CronJob) DeepCopyObject() runtime.Object {
	d := *c
	c.ObjectMeta.DeepCopyInto(&d.ObjectMeta)
	c.Spec.JobTemplate.DeepCopyInto(&d.Spec.JobTemplate)
	d.Spec.StartingDeadlineSeconds = copied(c.Spec.StartingDeadlineSeconds)
	d.Spec.SuccessfulJobsHistoryLimit = copied(c.Spec.SuccessfulJobsHistoryLimit)
	d.Spec.FailedJobsHistoryLimit = copied(c.Spec.FailedJobsHistoryLimit)
	d.Status.Active = append([]corev1.ObjectReference(nil), c.Status.Active...)
	d.Status.LastScheduleTime = c.Status.LastScheduleTime.DeepCopy()
	return &d
}

// DeepCopyObject implements runtime.Object.
func (l *CronJobList) DeepCopyObject() runtime.Object {
	d := *l
	l.ListMeta.DeepCopyInto(&d.ListMeta)
	d.Items = make([]CronJob, len(l.Items))
	for i := range l.Items {
		d.Items[i] = *l.Items[i].DeepCopyObject().(*CronJob)
	}
	return &d
}

// addToScheme registers the type.
func addToScheme(scheme *runtime.Scheme) {
	scheme.AddKnownTypes(groupVersion, &CronJob{}, &CronJobList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
}
