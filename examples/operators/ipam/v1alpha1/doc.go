// Package v1alpha1 has the resources that the operator keeps, as the CNI plugin whereabouts writes them, and the two of others that it
// reads: network attachment definitions (network.go) and the annotation in which Multus says which addresses a Pod has.
package v1alpha1
