// Package distributor brings the images that tests begin with from the registry's cluster to the build clusters.
//
//	ImageStreams of the hub, × build clusters ─filter─┐
//	TestImageStreamTagImports of all clusters ────────┼─▶ (cluster, namespace, stream, tag) ─▶ namespace, role, binding, stream,
//	configuration added, × build clusters ────────────┤                                       pull secret, import ─┐
//	answered ImageStreamImports of build clusters ────┘◀──────────────────────────────────────────────────────────┘
//
// An import is asked for by an object, and its answer is an event: no worker waits for a registry. Its name follows from the tag,
// so that there is at most one for each, whoever tries; one that a process left behind is found by the next.
//
// Source: pkg/controller/test-images-distributor of openshift/ci-tools.
package distributor
