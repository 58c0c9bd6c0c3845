package api

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestImageStreamTagImport asks for an image of the registry's cluster to be brought to a build cluster, until somebody deletes it.
type TestImageStreamTagImport struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`
	Spec              TestImageStreamTagImportSpec `json:"spec"`
}

// TestImageStreamTagImportSpec names the image.
type TestImageStreamTagImportSpec struct {
	// ClusterName is the build cluster. In a build cluster it is that one, whatever stands here.
	ClusterName string `json:"clusterName,omitempty"`
	Namespace   string `json:"namespace"`
	// Name is "stream:tag".
	Name string `json:"name"`
}

// WithImportName gives the import the name that says what it asks for, so that there is one for each wish.
func WithImportName(i *TestImageStreamTagImport) *TestImageStreamTagImport {
	i.Name = i.Spec.ClusterName + "-" + i.Spec.Namespace + "-" + strings.ReplaceAll(i.Spec.Name, ":", ".")
	return i
}

// TestImageStreamTagImportList is a list of them.
type TestImageStreamTagImportList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []TestImageStreamTagImport `json:"items"`
}
