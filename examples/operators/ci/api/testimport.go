package api

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

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
