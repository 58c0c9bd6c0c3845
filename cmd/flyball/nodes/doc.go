// Package nodes adds, for the commands that embed an API, what a cluster has besides its API and its workload
// controllers: a fake kubelet, and the controller that empties deleted namespaces and creates the default service
// account of each namespace.
package nodes
