// Package distributor brings the images that tests begin with from the registry's cluster to the build clusters.
//
//	ImageStreams of the hub, × build clusters ─filter─┐
//	TestImageStreamTagImports of all clusters ────────┼─▶ (cluster, namespace, stream, tag) ─▶ namespace, role, binding, stream,
//	configuration added, × build clusters ────────────┤                                       pull secret, import ─┐
//	answered ImageStreamImports of build clusters ────┘◀──────────────────────────────────────────────────────────┘
//
// An object requests an import, and its answer is an event, so no worker waits for a registry. The object's name is
// derived from the tag, so there is at most one for each tag, even with several processes. If a process dies, the next
// one finds its imports.
//
// Source: pkg/controller/test-images-distributor of openshift/ci-tools.
package distributor
