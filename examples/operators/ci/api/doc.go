// Package api holds the kinds that the CI operators work on, as Go types and, in the folder crds, as the definitions of the
// resources. Those that a CI system on OpenShift has built in (ImageStream, Image, ProwJob) are custom resources here, so that
// everything runs on any Kubernetes.
//
//	image.demo.io  ImageStream, Image, ImageStreamImport   what images there are, and the wish for another
//	prow.demo.io   ProwJob                                 a run of a CI job
//	ci.demo.io     TestImageStreamTagImport                the wish to have an image in a build cluster
//	               EphemeralCluster                        the wish to have a cluster for a test
package api
