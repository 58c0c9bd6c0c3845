package endpoints

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/events"
	"github.com/flyball-dev/flyball/controllers/internal/pods"
	"github.com/flyball-dev/flyball/controllers/internal/serving"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
	"github.com/flyball-dev/flyball/reconcile/source"
	"github.com/flyball-dev/flyball/workqueue"
)

const (
	// Name is the controller's name, the one it has in kube-controller-manager.
	Name = "endpoints-controller"
	// Component is the source that its events name.
	Component = "endpoint-controller"
)

// maxRetries is how often a failed sync is retried. After that only a new event queues the Service.
const maxRetries = 15

// Config is what the controller works on. All fields are required.
type Config struct {
	Client    *client.Cluster
	Services  informer.Informer[*corev1.Service]
	Pods      informer.Informer[*corev1.Pod]
	Endpoints informer.Informer[*corev1.Endpoints]
	// Recorder records the events of [Component].
	Recorder events.Recorder
}

// Options configures the controller. The zero value works.
type Options struct {
	// Workers is how many Services are synced at once. Zero means 5.
	Workers int
	// BatchPeriod delays the syncs that pod changes cause, so that one serves several changes. Zero means no delay.
	BatchPeriod time.Duration
	// Metrics receives the queue's metrics. Nil: none.
	Metrics workqueue.MetricsProvider
}

// controller is the reconciler of Services.
type controller struct {
	client    *client.Cluster
	services  informer.Informer[*corev1.Service]
	pods      informer.Informer[*corev1.Pod]
	endpoints informer.Informer[*corev1.Endpoints]
	recorder  events.Recorder
	triggers  *serving.TriggerTimes
	gate      *serving.Gate
}

// New returns a controller for all Endpoints. It adds an index to the informer of Services and one to that of Pods. A
// key is a Service's name, which is also the name of its Endpoints.
//
// Source: k8s.io/kubernetes v1.37.1 pkg/controller/endpoint/endpoints_controller.go
func New(c Config, o Options) (*reconcile.Controller[reconcile.Request], error) {
	if c.Client == nil || c.Services == nil || c.Pods == nil || c.Endpoints == nil || c.Recorder == nil {
		return nil, fmt.Errorf("%s: the config lacks a client, an informer or the recorder", Name)
	}
	if o.Workers <= 0 {
		o.Workers = 5
	}
	finder, err := serving.NewFinder(c.Services)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Name, err)
	}
	if err := pods.AddLabelIndex(c.Pods); err != nil {
		return nil, fmt.Errorf("%s: %w", Name, err)
	}
	r := &controller{
		client:    c.Client,
		services:  c.Services,
		pods:      c.Pods,
		endpoints: c.Endpoints,
		recorder:  c.Recorder,
		triggers:  serving.NewTriggerTimes(),
		gate:      serving.NewGate(c.Client),
	}
	client.Follow(c.Client, corev1.Resource("endpoints"), c.Endpoints)
	loop := reconcile.New(Name, r, reconcile.Options[reconcile.Request]{
		Workers: o.Workers, MaxRetries: maxRetries, Metrics: o.Metrics, Ready: r.gate.Ready,
	})
	for _, source := range []reconcile.Source[reconcile.Request]{
		source.Kind(c.Services, handler.EnqueueObject[*corev1.Service]()),
		source.Kind(c.Pods, finder.PodEvents(o.BatchPeriod)),
		source.Kind(c.Endpoints, r.endpointsEvents()),
	} {
		if err := loop.Watch(source); err != nil {
			return nil, fmt.Errorf("%s: %w", Name, err)
		}
	}
	return loop, nil
}
