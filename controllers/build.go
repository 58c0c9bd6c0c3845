package controllers

import (
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/rest"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/controllers/deployment"
	"github.com/flyball-dev/flyball/controllers/endpoints"
	"github.com/flyball-dev/flyball/controllers/endpointslice"
	"github.com/flyball-dev/flyball/controllers/garbagecollector"
	"github.com/flyball-dev/flyball/controllers/replicaset"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
)

// clientOf returns a client for one controller. It shares the caches and the record of own writes with the manager's
// client. As in kube-controller-manager, each controller gets the manager's limit on requests for itself, so a busy
// controller does not slow down the others.
//
// Source: kube-controller-manager v1.37.1 cmd/kube-controller-manager/app/controllermanager.go,
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

func newDeployment(m *manager.Manager, o Options) (manager.Runnable, error) {
	if o.Deployment.Metrics == nil {
		o.Deployment.Metrics = m.QueueMetrics()
	}
	deployments, err1 := informer.For[*appsv1.Deployment](m.Informers())
	sets, err2 := informer.For[*appsv1.ReplicaSet](m.Informers())
	pods, err3 := informer.For[*corev1.Pod](m.Informers())
	writer, err4 := clientOf(m, deployment.Name)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	return deployment.New(deployment.Config{
		Client: writer, Deployments: deployments, ReplicaSets: sets, Pods: pods,
		Recorder: m.GetEventRecorderFor(deployment.Name),
	}, o.Deployment)
}

func newReplicaSet(m *manager.Manager, o Options) (manager.Runnable, error) {
	if o.ReplicaSet.Metrics == nil {
		o.ReplicaSet.Metrics = m.QueueMetrics()
	}
	sets, err1 := informer.For[*appsv1.ReplicaSet](m.Informers())
	pods, err2 := informer.For[*corev1.Pod](m.Informers())
	writer, err3 := clientOf(m, replicaset.Name)
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	return replicaset.New(replicaset.Config{
		Client: writer, ReplicaSets: sets, Pods: pods, Recorder: m.GetEventRecorderFor(replicaset.Name),
	}, o.ReplicaSet)
}

func newEndpoints(m *manager.Manager, o Options) (manager.Runnable, error) {
	if o.Endpoints.Metrics == nil {
		o.Endpoints.Metrics = m.QueueMetrics()
	}
	services, err1 := informer.For[*corev1.Service](m.Informers())
	pods, err2 := informer.For[*corev1.Pod](m.Informers())
	//lint:ignore SA1019 They are deprecated, but clients that do not know EndpointSlices read them.
	written, err3 := informer.For[*corev1.Endpoints](m.Informers())
	writer, err4 := clientOf(m, endpoints.Name)
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	return endpoints.New(endpoints.Config{
		Client: writer, Services: services, Pods: pods, Endpoints: written,
		Recorder: m.GetEventRecorderFor(endpoints.Component),
	}, o.Endpoints)
}

func newEndpointSlice(m *manager.Manager, o Options) (manager.Runnable, error) {
	if o.EndpointSlice.Metrics == nil {
		o.EndpointSlice.Metrics = m.QueueMetrics()
	}
	services, err1 := informer.For[*corev1.Service](m.Informers())
	pods, err2 := informer.For[*corev1.Pod](m.Informers())
	nodes, err3 := informer.For[*corev1.Node](m.Informers())
	slices, err4 := informer.For[*discoveryv1.EndpointSlice](m.Informers())
	writer, err5 := clientOf(m, endpointslice.Name)
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		return nil, err
	}
	return endpointslice.New(endpointslice.Config{
		Client: writer, Services: services, Pods: pods, Nodes: nodes, EndpointSlices: slices,
		Recorder: m.GetEventRecorderFor(endpointslice.Component),
	}, o.EndpointSlice)
}

// newGarbageCollector gives the collector its own clients, with twice the rate of requests: it needs two for each
// object that it deletes. The collector has its own caches, too: it watches the metadata of every resource.
//
// Source: kube-controller-manager v1.37.1 cmd/kube-controller-manager/app/core.go, newGarbageCollectorController
func newGarbageCollector(m *manager.Manager, o Options) (manager.Runnable, error) {
	if o.GarbageCollector.Metrics == nil {
		o.GarbageCollector.Metrics = m.QueueMetrics()
	}
	config := configOf(m, garbagecollector.Name)
	config.QPS *= 2
	return garbagecollector.New(garbagecollector.Config{
		Server: config, Informers: m.Informers(), Recorder: m.GetEventRecorderFor(garbagecollector.Component),
	}, o.GarbageCollector)
}
