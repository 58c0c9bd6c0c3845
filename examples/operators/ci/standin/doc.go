// Package standin has small controllers that stand in for other programs of a CI system: an importer, which answers
// ImageStreamImports as OpenShift's API server does, and a runner of ProwJobs. They pull no images and run no tests.
// They only create the objects that the real programs would create, so the operators can run on any cluster.
package standin
