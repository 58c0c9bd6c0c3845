package controllers

import (
	"errors"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/client-go/metadata"

	"github.com/flyball-dev/flyball/controllers/deployment"
	"github.com/flyball-dev/flyball/controllers/endpoints"
	"github.com/flyball-dev/flyball/controllers/endpointslice"
	"github.com/flyball-dev/flyball/controllers/garbagecollector"
	"github.com/flyball-dev/flyball/controllers/replicaset"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/manager"
)

func newDeployment(m *manager.Manager, o Options) (manager.Runnable, error) {
	if o.Deployment.QueueMetrics == nil {
		o.Deployment.QueueMetrics = m.QueueMetrics()
	}
	deployments, err1 := informer.For[*appsv1.Deployment](m.Informers())
	sets, err2 := informer.For[*appsv1.ReplicaSet](m.Informers())
	pods, err3 := informer.For[*corev1.Pod](m.Informers())
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	return deployment.New(deployment.Config{
		Client: m.Client(), Deployments: deployments, ReplicaSets: sets, Pods: pods, Recorder: m.Recorder(deployment.Name),
	}, o.Deployment)
}

func newReplicaSet(m *manager.Manager, o Options) (manager.Runnable, error) {
	if o.ReplicaSet.QueueMetrics == nil {
		o.ReplicaSet.QueueMetrics = m.QueueMetrics()
	}
	sets, err1 := informer.For[*appsv1.ReplicaSet](m.Informers())
	pods, err2 := informer.For[*corev1.Pod](m.Informers())
	if err := errors.Join(err1, err2); err != nil {
		return nil, err
	}
	return replicaset.New(replicaset.Config{
		Client: m.Client(), ReplicaSets: sets, Pods: pods, Recorder: m.Recorder(replicaset.Name),
	}, o.ReplicaSet)
}

func newEndpoints(m *manager.Manager, o Options) (manager.Runnable, error) {
	if o.Endpoints.Metrics == nil {
		o.Endpoints.Metrics = m.QueueMetrics()
	}
	services, err1 := informer.For[*corev1.Service](m.Informers())
	pods, err2 := informer.For[*corev1.Pod](m.Informers())
	//lint:ignore SA1019 Deprecated they are, and read by whoever does not know EndpointSlices.
	written, err3 := informer.For[*corev1.Endpoints](m.Informers())
	if err := errors.Join(err1, err2, err3); err != nil {
		return nil, err
	}
	return endpoints.New(endpoints.Config{
		Client: m.Client(), Services: services, Pods: pods, Endpoints: written, Recorder: m.Recorder(endpoints.Component),
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
	if err := errors.Join(err1, err2, err3, err4); err != nil {
		return nil, err
	}
	return endpointslice.New(endpointslice.Config{
		Client: m.Client(), Services: services, Pods: pods, Nodes: nodes, EndpointSlices: slices,
		Recorder: m.Recorder(endpointslice.Component),
	}, o.EndpointSlice)
}

// newGarbageCollector gives the collector clients of its own: it follows every resource there is, by metadata.
func newGarbageCollector(m *manager.Manager, o Options) (manager.Runnable, error) {
	if o.GarbageCollector.Metrics == nil {
		o.GarbageCollector.Metrics = m.QueueMetrics()
	}
	objects, err := metadata.NewForConfig(m.Config())
	if err != nil {
		return nil, err
	}
	return garbagecollector.New(garbagecollector.Config{
		Client: m.Client(), Metadata: objects, Recorder: m.Recorder(garbagecollector.Component),
	}, o.GarbageCollector)
}
