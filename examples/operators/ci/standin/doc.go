// Package standin has small controllers that do what a CI system has other programs for: an importer, which answers
// ImageStreamImports as OpenShift's API server does, and a runner of ProwJobs. They pull no image and run no test; they make the
// objects that those would make, so that the operators can be seen at work on any cluster.
package standin
