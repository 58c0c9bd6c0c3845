// Package standin has small controllers that do the work of other programs of a CI system: an importer, which answers
// ImageStreamImports as OpenShift's API server does, and a runner of ProwJobs. They pull no image and run no test. They
// create the objects that the real programs would create, so that the operators can run on any cluster.
package standin
