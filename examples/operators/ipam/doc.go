// Command ipam is an operator for the addresses that the CNI plugin whereabouts assigns to Pods. It releases addresses
// that no Pod needs any more, divides networks into slices for nodes, and reports problems in conditions and events.
//
//	ipam [flags]    run the operator on the cluster of the kubeconfig
//	ipam story      play a demo of half a minute on an API server inside the process
//
// Package v1alpha1 defines the resources, ranges computes with addresses, controller has the controllers, and manifests
// has the files to apply to a cluster. suite has the scenarios that run on localapi and on the real kube-apiserver.
package main
