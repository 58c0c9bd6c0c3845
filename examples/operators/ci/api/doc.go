//go:generate -command controller-gen go tool -modfile=../../../../tools/go.mod controller-gen
//go:generate controller-gen object paths=.

// +kubebuilder:object:generate=true

// Package api defines the kinds that the CI operators work on, as Go types and, in the folder crds, as
// CustomResourceDefinitions. OpenShift and its CI system provide some of them (ImageStream, Image, ProwJob). Here all
// are custom resources, so that everything runs on any Kubernetes.
//
//	image.demo.io  ImageStream, Image, ImageStreamImport   existing images, and a request to import one
//	prow.demo.io   ProwJob                                 a run of a CI job
//	ci.demo.io     TestImageStreamTagImport                a request for an image in a build cluster
//	               EphemeralCluster                        a request for a cluster for a test
package api
