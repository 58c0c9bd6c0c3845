// Command ipam is an operator for the addresses that the CNI plugin whereabouts assigns to Pods. It releases addresses
// that no Pod needs any more, divides networks into slices for nodes, and reports problems in conditions and events.
//
// Package v1alpha1 defines the resources, ranges computes with addresses, and controller has the controllers. The
// folder manifests has the files to apply to a cluster. The tests play scenarios on localapi or on a real cluster
// (scenarios_test.go), tell the story of make run (story_test.go), and kill the operator (kill_test.go).
package main
