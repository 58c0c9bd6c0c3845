// Package v1alpha1 defines the operator's resources, in the form in which the CNI plugin whereabouts writes them. It
// also defines two formats of other projects that the operator reads: network attachment definitions (network.go), and
// the annotation in which Multus lists the addresses of a Pod.
package v1alpha1
