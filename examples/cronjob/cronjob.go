package main

import (
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// groupVersion is that of the CronJob here. The one of Kubernetes is in batch/v1.
var groupVersion = schema.GroupVersion{Group: "batch.examples.flyball.dev", Version: "v1"}

// CronJob makes Jobs at the times of a schedule.
type CronJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              CronJobSpec   `json:"spec"`
	Status            CronJobStatus `json:"status,omitempty,omitzero"`
}

// ConcurrencyPolicy says what happens when a run is due while the one before is active.
type ConcurrencyPolicy string

// The policies. The empty one is Allow.
const (
	AllowConcurrent   ConcurrencyPolicy = "Allow"
	ForbidConcurrent  ConcurrencyPolicy = "Forbid"  // the run waits until the other is over
	ReplaceConcurrent ConcurrencyPolicy = "Replace" // the other is deleted
)

// CronJobSpec is what is asked for.
type CronJobSpec struct {
	// Schedule has five fields, as cron has them, in UTC; see [ParseSchedule].
	Schedule string `json:"schedule"`
	// StartingDeadlineSeconds is how late a run may begin; nil: as late as it likes.
	StartingDeadlineSeconds *int64            `json:"startingDeadlineSeconds,omitempty"`
	ConcurrencyPolicy       ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`
	// Suspend stops further runs. Those that are active go on.
	Suspend     bool                    `json:"suspend,omitempty"`
	JobTemplate batchv1.JobTemplateSpec `json:"jobTemplate"`
	// SuccessfulJobsHistoryLimit and FailedJobsHistoryLimit are how many finished Jobs are kept; nil: all.
	SuccessfulJobsHistoryLimit *int32 `json:"successfulJobsHistoryLimit,omitempty"`
	FailedJobsHistoryLimit     *int32 `json:"failedJobsHistoryLimit,omitempty"`
}

// CronJobStatus is how it is.
type CronJobStatus struct {
	// Active are the Jobs that are not finished.
	Active []corev1.ObjectReference `json:"active,omitempty"`
	// LastScheduleTime is the time in the schedule of the newest Job.
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`
}

// CronJobList is a list of them.
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
