package multiclusterruntime

import (
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cluster"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	mcmanager "sigs.k8s.io/multicluster-runtime/pkg/manager"
	peer "sigs.k8s.io/multicluster-runtime/pkg/multicluster"
	mcreconcile "sigs.k8s.io/multicluster-runtime/pkg/reconcile"

	"github.com/flyball-dev/flyball/interop/controllerruntime"
	own "github.com/flyball-dev/flyball/workqueue"
)

// NewManager is mcmanager.New with Flyball's manager as the local one. The provider may be nil.
//
// Errors: those of controllerruntime.NewManager and of mcmanager.WithMultiCluster.
func NewManager(config *rest.Config, provider peer.Provider, o manager.Options, more ...mcmanager.Option,
) (mcmanager.Manager, error) {
	local, err := controllerruntime.NewManager(config, o)
	if err != nil {
		return nil, err
	}
	return mcmanager.WithMultiCluster(local, provider, more...)
}

// NewCluster is cluster.New with [Parts]. Options that come later win.
func NewCluster(config *rest.Config, opts ...cluster.Option) (cluster.Cluster, error) {
	return cluster.New(config, append([]cluster.Option{Parts}, opts...)...)
}

// Parts is a cluster.Option that gives a cluster Flyball's cache and client.
func Parts(o *cluster.Options) {
	o.NewCache, o.NewClient = controllerruntime.NewCache, controllerruntime.NewClient
}

// NewQueue is for the NewQueue of a controller's options. The queue takes one request of each cluster in turn.
func NewQueue(controller string, limiter workqueue.TypedRateLimiter[mcreconcile.Request],
) workqueue.TypedRateLimitingInterface[mcreconcile.Request] {
	return controllerruntime.NewQueueWithOrder(controller, limiter,
		own.NewFairOrder(own.FairOptions[mcreconcile.Request]{
			Group: func(r mcreconcile.Request) string { return r.ClusterName.String() },
		}))
}
