// Package api has the kinds that the CI operators work on, as Go types and, in the folder crds, as the definitions of
// the resources. OpenShift and its CI system have some of them built in (ImageStream, Image, ProwJob). Here they are
// custom resources, so that everything runs on any Kubernetes.
//
//	image.demo.io  ImageStream, Image, ImageStreamImport   the images that exist, and the request to import another
//	prow.demo.io   ProwJob                                 a run of a CI job
//	ci.demo.io     TestImageStreamTagImport                the request for an image in a build cluster
//	               EphemeralCluster                        the request for a cluster for a test
package api
