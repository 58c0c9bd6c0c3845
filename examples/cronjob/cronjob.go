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

// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:printcolumn:name=Schedule,type=string,JSONPath=.spec.schedule
// +kubebuilder:printcolumn:name=Suspend,type=boolean,JSONPath=.spec.suspend
// +kubebuilder:printcolumn:name=Last Schedule,type=date,JSONPath=.status.lastScheduleTime

// CronJob creates Jobs at the times of a schedule.
type CronJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              CronJobSpec   `json:"spec"`
	Status            CronJobStatus `json:"status,omitempty,omitzero"`
}

// +kubebuilder:validation:Enum=Allow;Forbid;Replace

// ConcurrencyPolicy decides what happens when a run is due while the previous one is active.
type ConcurrencyPolicy string

// The policies. The empty policy means Allow.
const (
	AllowConcurrent   ConcurrencyPolicy = "Allow"
	ForbidConcurrent  ConcurrencyPolicy = "Forbid"  // the run waits until the previous one has finished
	ReplaceConcurrent ConcurrencyPolicy = "Replace" // the previous run is deleted
)

// +kubebuilder:object:generate=true

// CronJobSpec is the desired state of a CronJob.
type CronJobSpec struct {
	// Schedule has the five fields of cron, in UTC; see [ParseSchedule].
	// +kubebuilder:validation:MinLength=1
	Schedule string `json:"schedule"`
	// StartingDeadlineSeconds is how late a run may begin. Nil means any time.
	// +kubebuilder:validation:Minimum=0
	StartingDeadlineSeconds *int64            `json:"startingDeadlineSeconds,omitempty"`
	ConcurrencyPolicy       ConcurrencyPolicy `json:"concurrencyPolicy,omitempty"`
	// Suspend stops further runs. Active ones continue.
	Suspend bool `json:"suspend,omitempty"`
	// JobTemplate is what a Job is created from. The server checks it when the Job is created.
	// +kubebuilder:validation:Schemaless
	// +kubebuilder:validation:Type=object
	// +kubebuilder:pruning:PreserveUnknownFields
	JobTemplate batchv1.JobTemplateSpec `json:"jobTemplate"`
	// SuccessfulJobsHistoryLimit is how many Jobs are kept that were successful. Nil keeps all.
	// +kubebuilder:validation:Minimum=0
	SuccessfulJobsHistoryLimit *int32 `json:"successfulJobsHistoryLimit,omitempty"`
	// FailedJobsHistoryLimit is how many Jobs are kept that have failed. Nil keeps all.
	// +kubebuilder:validation:Minimum=0
	FailedJobsHistoryLimit *int32 `json:"failedJobsHistoryLimit,omitempty"`
}

// +kubebuilder:object:generate=true

// CronJobStatus is the observed state of a CronJob.
type CronJobStatus struct {
	// Active lists the Jobs that have not finished.
	Active []corev1.ObjectReference `json:"active,omitempty"`
	// LastScheduleTime is the scheduled time of the newest Job.
	LastScheduleTime *metav1.Time `json:"lastScheduleTime,omitempty"`
}

// +kubebuilder:object:root=true

// CronJobList is a list of CronJobs.
type CronJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []CronJob `json:"items"`
}

// addToScheme registers the type.
func addToScheme(scheme *runtime.Scheme) {
	scheme.AddKnownTypes(groupVersion, &CronJob{}, &CronJobList{})
	metav1.AddToGroupVersion(scheme, groupVersion)
}
