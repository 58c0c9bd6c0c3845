package multicluster

import (
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/reconcile"
)

// LocalCluster is the name of the cluster of the local manager.
const LocalCluster = ""

// Request names an object of a cluster. Two that are equal name the same object.
type Request struct {
	// Cluster is the name the cluster was announced with; [LocalCluster] for the local manager's.
	Cluster string
	reconcile.Request
}

// RequestFor is the Request for the object of that name in a cluster.
func RequestFor(cluster, namespace, name string) Request {
	return Request{
		Cluster: cluster,
		Request: reconcile.Request{NamespacedName: types.NamespacedName{Namespace: namespace, Name: name}},
	}
}

// String is cluster://CLUSTER/NAMESPACE/NAME, and NAMESPACE/NAME in the local cluster.
//
// Source: Request.String of multicluster-runtime v0.24.1 pkg/reconcile.
func (r Request) String() string {
	if r.Cluster == LocalCluster {
		return r.Request.String()
	}
	return "cluster://" + r.Cluster + "/" + r.Request.String()
}
