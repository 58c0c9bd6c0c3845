package controllers

import (
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/controllers/deployment"
	"github.com/flyball-dev/flyball/controllers/endpoints"
	"github.com/flyball-dev/flyball/controllers/endpointslice"
	"github.com/flyball-dev/flyball/controllers/endpointslicemirroring"
	"github.com/flyball-dev/flyball/controllers/garbagecollector"
	"github.com/flyball-dev/flyball/controllers/replicaset"
	"github.com/flyball-dev/flyball/manager"
	"github.com/flyball-dev/flyball/workqueue"
)

// clientOf returns a client for one controller. It shares the caches and the record of own writes with the manager's
// client. As in kube-controller-manager, each controller gets the manager's limit on requests for itself, so a busy
// controller does not slow down the others.
//
// Source: kube-controller-manager v1.37.2 cmd/kube-controller-manager/app/controllermanager.go,
// ControllerContext.NewClient
func clientOf(m *manager.Manager, name string) (*client.Cluster, error) {
	return m.GetClient().Through(configOf(m, name))
}

// configOf returns the manager's config, with the controller's name in the user agent.
func configOf(m *manager.Manager, name string) *rest.Config {
	config := m.GetConfig()
	config.UserAgent += "/" + name
	return config
}

// metricsOf returns the metrics that an option asks for, or those of the manager.
func metricsOf(m *manager.Manager, option workqueue.MetricsProvider) workqueue.MetricsProvider {
	if option == nil {
		return m.QueueMetrics()
	}
	return option
}

func newDeployment(m *manager.Manager, o Options) (manager.Runnable, error) {
	c, err := clientOf(m, deployment.Name)
	if err != nil {
		return nil, err
	}
	o.Deployment.Metrics = metricsOf(m, o.Deployment.Metrics)
	return deployment.New(c, m.Informers(), m.GetEventRecorderFor(deployment.Name), o.Deployment)
}

func newReplicaSet(m *manager.Manager, o Options) (manager.Runnable, error) {
	c, err := clientOf(m, replicaset.Name)
	if err != nil {
		return nil, err
	}
	o.ReplicaSet.Metrics = metricsOf(m, o.ReplicaSet.Metrics)
	return replicaset.New(c, m.Informers(), m.GetEventRecorderFor(replicaset.Name), o.ReplicaSet)
}

func newEndpoints(m *manager.Manager, o Options) (manager.Runnable, error) {
	c, err := clientOf(m, endpoints.Name)
	if err != nil {
		return nil, err
	}
	o.Endpoints.Metrics = metricsOf(m, o.Endpoints.Metrics)
	return endpoints.New(c, m.Informers(), m.GetEventRecorderFor(endpoints.Component), o.Endpoints)
}

func newEndpointSlice(m *manager.Manager, o Options) (manager.Runnable, error) {
	c, err := clientOf(m, endpointslice.Name)
	if err != nil {
		return nil, err
	}
	o.EndpointSlice.Metrics = metricsOf(m, o.EndpointSlice.Metrics)
	return endpointslice.New(c, m.Informers(), m.GetEventRecorderFor(endpointslice.Component), o.EndpointSlice)
}

func newEndpointSliceMirroring(m *manager.Manager, o Options) (manager.Runnable, error) {
	c, err := clientOf(m, endpointslicemirroring.Name)
	if err != nil {
		return nil, err
	}
	o.EndpointSliceMirroring.Metrics = metricsOf(m, o.EndpointSliceMirroring.Metrics)
	return endpointslicemirroring.New(c, m.Informers(), m.GetEventRecorderFor(endpointslicemirroring.Component),
		o.EndpointSliceMirroring)
}

// newGarbageCollector gives the collector its own clients, with twice the rate of requests: it needs two for each
// object that it deletes. The collector has its own caches, too: it watches the metadata of every resource.
//
// Source: kube-controller-manager v1.37.2 cmd/kube-controller-manager/app/core.go, newGarbageCollectorController
func newGarbageCollector(m *manager.Manager, o Options) (manager.Runnable, error) {
	config := configOf(m, garbagecollector.Name)
	config.QPS *= 2
	o.GarbageCollector.Metrics = metricsOf(m, o.GarbageCollector.Metrics)
	if o.GarbageCollector.Informers == nil {
		o.GarbageCollector.Informers = m.Informers()
	}
	return garbagecollector.New(config, m.GetEventRecorderFor(garbagecollector.Component), o.GarbageCollector)
}
