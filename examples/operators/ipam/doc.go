// Command ipam is an operator that keeps the addresses which the CNI plugin whereabouts hands out to Pods: it takes back what no Pod
// needs any more, cuts networks into slices for nodes, and says in conditions and events how things are.
//
//	ipam [flags]    the operator, on the cluster of the kubeconfig
//	ipam story      a story on an API server inside this process, on the terminal, in half a minute
//
// Packages: v1alpha1 has the resources, ranges reckons with addresses, controller has the controllers, manifests what is applied to a
// cluster, suite the scenarios that run on localapi and on the real kube-apiserver.
package main
