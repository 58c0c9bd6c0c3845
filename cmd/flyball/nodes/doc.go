// Package nodes is what a cluster has beside its API and its workload controllers, for the commands that embed one: a fake
// kubelet, and the controller that empties deleted namespaces and gives each its service account.
//
// nodes.go adds both to a manager; quiet.go is how its clients take warnings.
package nodes
