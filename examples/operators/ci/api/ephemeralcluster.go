package api

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
)

// +kubebuilder:object:root=true

// EphemeralCluster requests a cluster that lives as long as its owner needs it.
type EphemeralCluster struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              EphemeralClusterSpec   `json:"spec"`
	Status            EphemeralClusterStatus `json:"status,omitempty,omitzero"`
}

// EphemeralClusterSpec is the desired state of an EphemeralCluster.
type EphemeralClusterSpec struct {
	// TearDownCluster means that the cluster is no longer needed.
	TearDownCluster bool `json:"tearDownCluster,omitempty"`
	// TimeToLive is the age at which the cluster is torn down, whether it is still needed or not. Nil means the
	// operator's default.
	TimeToLive *metav1.Duration `json:"timeToLive,omitempty"`
	CIOperator CIOperatorSpec   `json:"ciOperator"`
}

// CIOperatorSpec is the part of a ci-operator configuration that the owner writes. Free-form fields are passed on
// unchanged.
type CIOperatorSpec struct {
	BuildRoot      *runtime.RawExtension           `json:"buildRoot,omitempty"`
	BaseImages     map[string]runtime.RawExtension `json:"baseImages,omitempty"`
	ExternalImages map[string]runtime.RawExtension `json:"externalImages,omitempty"`
	Releases       map[string]runtime.RawExtension `json:"releases,omitempty"`
	Resources      map[string]runtime.RawExtension `json:"resources,omitempty"`
	Test           TestSpec                        `json:"test"`
}

// TestSpec names the workflow that makes the cluster, and the source of the cluster.
type TestSpec struct {
	Workflow string            `json:"workflow"`
	Env      map[string]string `json:"env,omitempty"`
	// ClusterProfile names the cloud account. ClusterClaim takes a cluster from a pool instead.
	ClusterProfile string                `json:"clusterProfile,omitempty"`
	ClusterClaim   *runtime.RawExtension `json:"clusterClaim,omitempty"`
}

// EphemeralClusterPhase is the phase of a cluster.
type EphemeralClusterPhase string

// The phases. The last two are final.
const (
	Provisioning   EphemeralClusterPhase = "Provisioning"
	Ready          EphemeralClusterPhase = "Ready"
	Deprovisioning EphemeralClusterPhase = "Deprovisioning"
	Deprovisioned  EphemeralClusterPhase = "Deprovisioned"
	Failed         EphemeralClusterPhase = "Failed"
)

// EphemeralClusterStatus is the observed state of an EphemeralCluster.
type EphemeralClusterStatus struct {
	Phase      EphemeralClusterPhase `json:"phase,omitempty"`
	Conditions []metav1.Condition    `json:"conditions,omitempty"`
	// ProwJobID is the name of the ProwJob that makes the cluster.
	ProwJobID  string `json:"prowJobId,omitempty"`
	ProwJobURL string `json:"prowJobURL,omitempty"`
	// SecretRef is the name of the Secret with the cluster's credentials, once they are known.
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

// Messages that users look for.
const (
	NamespaceNotFoundMessage  = "ci-operator NS not found"
	KubeconfigNotReadyMessage = "kubeconfig not ready"
	HiveNotReadyMessage       = "hive secrets not ready"
)

// DependentProwJobFinalizer keeps an EphemeralCluster until its ProwJob has been told to end.
const DependentProwJobFinalizer = "ephemeralcluster.ci.openshift.io/dependent-prowjob"

// The annotations that name the person or pipeline that a cluster is requested for.
const (
	KonfluxClusterAnnotation  = "ephemeralcluster.ci.openshift.io/konflux-cluster"
	KonfluxTenantAnnotation   = "ephemeralcluster.ci.openshift.io/konflux-tenant"
	PipelineRunNameAnnotation = "ephemeralcluster.ci.openshift.io/pipeline-run-name"
	TaskRunNameAnnotation     = "ephemeralcluster.ci.openshift.io/task-run-name"
)

// +kubebuilder:object:root=true

// EphemeralClusterList is a list of EphemeralClusters.
type EphemeralClusterList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []EphemeralCluster `json:"items"`
}

// The groups and versions of the kinds in this package.
var (
	ImageGroup = schema.GroupVersion{Group: "image.demo.io", Version: "v1"}
	ProwGroup  = schema.GroupVersion{Group: "prow.demo.io", Version: "v1"}
	CIGroup    = schema.GroupVersion{Group: "ci.demo.io", Version: "v1"}
)

// NewScheme returns a scheme with these kinds and Kubernetes' own.
func NewScheme() *runtime.Scheme {
	scheme := runtime.NewScheme()
	if err := clientscheme.AddToScheme(scheme); err != nil {
		panic(err) // fails only if two of Kubernetes' own kinds collide
	}
	scheme.AddKnownTypes(ImageGroup, &ImageStream{}, &ImageStreamList{}, &Image{}, &ImageList{}, &ImageStreamImport{},
		&ImageStreamImportList{})
	scheme.AddKnownTypes(ProwGroup, &ProwJob{}, &ProwJobList{})
	scheme.AddKnownTypes(CIGroup, &TestImageStreamTagImport{}, &TestImageStreamTagImportList{}, &EphemeralCluster{},
		&EphemeralClusterList{})
	for _, g := range []schema.GroupVersion{ImageGroup, ProwGroup, CIGroup} {
		metav1.AddToGroupVersion(scheme, g)
	}
	return scheme
}
