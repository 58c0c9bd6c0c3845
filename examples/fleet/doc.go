// Command fleet copies ConfigMaps to every cluster of a fleet of projects, and keeps the copies as the originals are.
//
//	fleet         for the cluster that $KUBECONFIG or ~/.kube/config names, whose Projects have control planes
//	fleet story   on five API servers inside the process
//
// sync.go is the controller: one for all clusters, those that come later included. A request names the cluster of a copy. It is made by
// what happens to the original (in the local cluster), to the copy, and to the namespaces of a cluster: that is how one that joins gets
// all its copies. main.go puts it together, story.go shows it.
package main
