// Command ipam is an operator for the addresses that the CNI plugin whereabouts assigns to Pods. It releases addresses
// that no Pod needs any more, cuts networks into slices for nodes, and reports in conditions and events.
//
//	ipam [flags]    the operator, on the cluster of the kubeconfig
//	ipam story      a story on an API server inside this process, on the terminal, in half a minute
//
// Packages: v1alpha1 has the resources, ranges computes with addresses, controller has the controllers, and manifests
// has what is applied to a cluster. suite has the scenarios that run on localapi and on the real kube-apiserver.
package main
