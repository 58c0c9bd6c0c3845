package multicluster

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/reconcile"
)

// LocalCluster is the name of the cluster of the local manager.
const LocalCluster = ""

// Request names an object of a cluster. Equal Requests name the same object.
type Request struct {
	// Cluster is the name that the cluster was announced with, or [LocalCluster].
	Cluster string
	reconcile.Request
}

// RequestFor returns the Request for an object of a cluster.
func RequestFor(cluster, namespace, name string) Request {
	return Request{
		Cluster: cluster,
		Request: reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}},
	}
}

// String returns cluster://CLUSTER/NAMESPACE/NAME, or NAMESPACE/NAME for the local cluster.
//
// Source: Request.String of multicluster-runtime v0.24.1 pkg/reconcile.
func (r Request) String() string {
	if r.Cluster == LocalCluster {
		return r.Request.String()
	}
	return "cluster://" + r.Cluster + "/" + r.Request.String()
}
