package api

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// EphemeralCluster asks for a cluster that lives as long as its owner needs it.
type EphemeralCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              EphemeralClusterSpec   `json:"spec"`
	Status            EphemeralClusterStatus `json:"status,omitempty,omitzero"`
}

// EphemeralClusterSpec is what is asked for.
type EphemeralClusterSpec struct {
	// TearDownCluster says that the cluster is not needed any more.
	TearDownCluster bool `json:"tearDownCluster,omitempty"`
	// TimeToLive is the age at which the cluster is torn down, whether it is needed or not. Nil is what the operator says.
	TimeToLive *metav1.Duration `json:"timeToLive,omitempty"`
	CIOperator CIOperatorSpec   `json:"ciOperator"`
}

// CIOperatorSpec is the part of a ci-operator configuration that the owner writes. What is free form is passed on as it is.
type CIOperatorSpec struct {
	BuildRoot      *runtime.RawExtension           `json:"buildRoot,omitempty"`
	BaseImages     map[string]runtime.RawExtension `json:"baseImages,omitempty"`
	ExternalImages map[string]runtime.RawExtension `json:"externalImages,omitempty"`
	Releases       map[string]runtime.RawExtension `json:"releases,omitempty"`
	Resources      map[string]runtime.RawExtension `json:"resources,omitempty"`
	Test           TestSpec                        `json:"test"`
}

// TestSpec says which workflow makes the cluster, and where it comes from.
type TestSpec struct {
	Workflow string            `json:"workflow"`
	Env      map[string]string `json:"env,omitempty"`
	// ClusterProfile names the cloud account; ClusterClaim takes a cluster from a pool instead.
	ClusterProfile string                `json:"clusterProfile,omitempty"`
	ClusterClaim   *runtime.RawExtension `json:"clusterClaim,omitempty"`
}

// EphemeralClusterPhase is how far a cluster is.
type EphemeralClusterPhase string

// The phases. The last two are final.
const (
	Provisioning   EphemeralClusterPhase = "Provisioning"
	Ready          EphemeralClusterPhase = "Ready"
	Deprovisioning EphemeralClusterPhase = "Deprovisioning"
	Deprovisioned  EphemeralClusterPhase = "Deprovisioned"
	Failed         EphemeralClusterPhase = "Failed"
)

// EphemeralClusterStatus is how it is.
type EphemeralClusterStatus struct {
	Phase      EphemeralClusterPhase `json:"phase,omitempty"`
	Conditions []metav1.Condition    `json:"conditions,omitempty"`
	// ProwJobID is the name of the ProwJob that makes the cluster.
	ProwJobID  string `json:"prowJobId,omitempty"`
	ProwJobURL string `json:"prowJobURL,omitempty"`
	// SecretRef is the name of the Secret that has the cluster's credentials, once they are known.
	SecretRef string `json:"secretRef,omitempty"`
}

// The types of conditions.
const (
	ProwJobCreating  = "ProwJobCreating"
	ClusterReady     = "ClusterReady"
	ProwJobCompleted = "ProwJobCompleted"
	TestCompleted    = "TestCompleted"
)

// The reasons of conditions.
const (
	ProwJobCreatedReason                   = "ProwJobCreated"
	ClusterReadyReason                     = "ClusterReady"
	TestCompletedReason                    = "TestCompleted"
	CIOperatorJobsGenerateFailureReason    = "CIOperatorJobsGenerateFailure"
	ProwJobFailureReason                   = "ProwJobFailure"
	ProwJobCompletedReason                 = "ProwJobCompleted"
	TooManyProwJobsBoundReason             = "TooManyProwJobsBound"
	SecretsFetchFailureReason              = "SecretsFetchFailure"
	CreateTestCompletedSecretFailureReason = "CreateTestCompletedSecretFailure"
	ValidationFailureReason                = "EphemeralClusterValidationFailure"
	TimeToLiveOverReason                   = "TimeToLiveOver"
)

// The messages that people look for.
const (
	NamespaceNotFoundMessage  = "ci-operator NS not found"
	KubeconfigNotReadyMessage = "kubeconfig not ready"
	HiveNotReadyMessage       = "hive secrets not ready"
)

// DependentProwJobFinalizer keeps an EphemeralCluster until its ProwJob has been told to end.
const DependentProwJobFinalizer = "ephemeralcluster.ci.openshift.io/dependent-prowjob"

// The annotations that say on whose behalf a cluster is asked for.
const (
	KonfluxClusterAnnotation  = "ephemeralcluster.ci.openshift.io/konflux-cluster"
	KonfluxTenantAnnotation   = "ephemeralcluster.ci.openshift.io/konflux-tenant"
	PipelineRunNameAnnotation = "ephemeralcluster.ci.openshift.io/pipeline-run-name"
	TaskRunNameAnnotation     = "ephemeralcluster.ci.openshift.io/task-run-name"
)

// EphemeralClusterList is a list of them.
type EphemeralClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []EphemeralCluster `json:"items"`
}
