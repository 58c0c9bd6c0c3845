package api

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientscheme "k8s.io/client-go/kubernetes/scheme"
)

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
