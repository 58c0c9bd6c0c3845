// Package distributor copies the images that tests start from out of the hub's registry into the build clusters.
//
//	ImageStreams of the hub, × build clusters ─filter─┐
//	TestImageStreamTagImports of all clusters ────────┼─▶ (cluster, namespace, stream, tag) ─▶ namespace, role, binding, stream,
//	configuration added, × build clusters ────────────┤                                       pull secret, import ─┐
//	answered ImageStreamImports of build clusters ────┘◀──────────────────────────────────────────────────────────┘
//
// An ImageStreamImport requests an import, and its answer arrives as an event, so no worker waits for a registry. The
// object's name is derived from the tag, so there is at most one import of each tag, even with several processes. If a
// process dies, the next one finds its imports.
//
// Source: pkg/controller/test-images-distributor of openshift/ci-tools.
package distributor
