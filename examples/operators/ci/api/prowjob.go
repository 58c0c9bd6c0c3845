package api

import (
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// +kubebuilder:object:root=true

// ProwJob is one run of a CI job.
type ProwJob struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              ProwJobSpec   `json:"spec"`
	Status            ProwJobStatus `json:"status,omitempty,omitzero"`
}

// ProwJobSpec is the desired state of a ProwJob: what runs, and where.
type ProwJobSpec struct {
	Type ProwJobType `json:"type"`
	Job  string      `json:"job"`
	// Cluster is the name of the build cluster.
	Cluster string `json:"cluster,omitempty"`
	Refs    *Refs  `json:"refs,omitempty"`
	// Args and Env are those of the program that runs.
	Args []string          `json:"args,omitempty"`
	Env  map[string]string `json:"env,omitempty"`
}

// ProwJobType is the occasion on which a job runs.
type ProwJobType string

// The types of jobs.
const (
	PostsubmitJob ProwJobType = "postsubmit"
	PresubmitJob  ProwJobType = "presubmit"
	PeriodicJob   ProwJobType = "periodic"
)

// Refs is the source code that a job runs on.
type Refs struct {
	Org     string `json:"org"`
	Repo    string `json:"repo"`
	BaseRef string `json:"base_ref,omitempty"`
	BaseSHA string `json:"base_sha,omitempty"`
}

// ProwJobState is the state of a job.
type ProwJobState string

// The states of jobs. The last four are final.
const (
	SchedulingState ProwJobState = "scheduling"
	TriggeredState  ProwJobState = "triggered"
	PendingState    ProwJobState = "pending"
	SuccessState    ProwJobState = "success"
	FailureState    ProwJobState = "failure"
	AbortedState    ProwJobState = "aborted"
	ErrorState      ProwJobState = "error"
)

// ProwJobStatus is the observed state of a ProwJob.
type ProwJobStatus struct {
	State          ProwJobState `json:"state,omitempty"`
	URL            string       `json:"url,omitempty"`
	Description    string       `json:"description,omitempty"`
	CompletionTime *metav1.Time `json:"completionTime,omitempty"`
}

// Complete reports whether the job has reached a final state.
func (j *ProwJob) Complete() bool {
	switch j.Status.State {
	case SuccessState, FailureState, AbortedState, ErrorState:
		return true
	}
	return j.Status.CompletionTime != nil
}

// Finish sets the job to a final state, with a reason.
func (j *ProwJob) Finish(state ProwJobState, description string) {
	now := metav1.NewTime(time.Now())
	j.Status.State, j.Status.Description, j.Status.CompletionTime = state, description, &now
}

// The labels of ProwJobs.
const (
	JobLabel       = "prow.demo.io/job"
	OrgLabel       = "prow.demo.io/refs.org"
	RepoLabel      = "prow.demo.io/refs.repo"
	TypeLabel      = "prow.demo.io/type"
	CreatedByLabel = "openshift.io/created-by"
	// PromotionLabel marks the jobs that promote images.
	PromotionLabel = "ci-operator.openshift.io/is-promotion"
	// EphemeralClusterLabel names the EphemeralCluster that a job runs for.
	EphemeralClusterLabel = "ci.openshift.io/ephemeral-cluster"
	// JobIDLabel is a label of the namespace in which a job runs. It names the ProwJob.
	JobIDLabel = "ci.openshift.io/jobid"
)

// +kubebuilder:object:root=true

// ProwJobList is a list of ProwJobs.
type ProwJobList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []ProwJob `json:"items"`
}

// +kubebuilder:object:root=true

// TestImageStreamTagImport requests that an image of the registry's cluster is brought to a build cluster. It is in
// force until it is deleted.
type TestImageStreamTagImport struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              TestImageStreamTagImportSpec `json:"spec"`
}

// TestImageStreamTagImportSpec names the image.
type TestImageStreamTagImportSpec struct {
	// ClusterName is the build cluster. On a build cluster it is ignored: that cluster is meant.
	ClusterName string `json:"clusterName,omitempty"`
	Namespace   string `json:"namespace"`
	// Name is "stream:tag".
	Name string `json:"name"`
}

// WithImportName gives the import a name that is derived from what it requests, so that there is one import per
// request.
func WithImportName(i *TestImageStreamTagImport) *TestImageStreamTagImport {
	i.Name = i.Spec.ClusterName + "-" + i.Spec.Namespace + "-" + strings.ReplaceAll(i.Spec.Name, ":", ".")
	return i
}

// +kubebuilder:object:root=true

// TestImageStreamTagImportList is a list of TestImageStreamTagImports.
type TestImageStreamTagImportList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []TestImageStreamTagImport `json:"items"`
}
