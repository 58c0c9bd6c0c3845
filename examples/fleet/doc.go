//go:generate -command controller-gen go tool -modfile=../../tools/go.mod controller-gen
//go:generate controller-gen crd object paths=. output:crd:dir=.

// +groupName=resourcemanager.miloapis.com
// +versionName=v1alpha1

// Command fleet copies ConfigMaps to every cluster of a fleet of projects, and keeps the copies in step with the
// originals.
//
//	fleet         for the cluster that $KUBECONFIG or ~/.kube/config names, whose Projects have control planes
//	fleet story   on five API servers inside the process
//
// sync.go is the controller. There is one for all clusters, including those that join later. A request names a copy and
// its cluster. Three things trigger it: changes of the original (in the local cluster), changes of the copy, and new
// namespaces in the copy's cluster. So a cluster that joins gets all its copies. main.go builds the process, story.go
// demonstrates it on a site with Projects (site.go).
package main
