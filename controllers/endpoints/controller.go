package endpoints

import (
	"errors"
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
// key is a Service's name, which is also the name of its Endpoints. The recorder is the one for [Component].
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpoint/endpoints_controller.go
func New(c *client.Cluster, informers *informer.Factory, recorder events.Recorder, o Options,
) (*reconcile.Controller[reconcile.Request], error) {
	r := &controller{client: c, recorder: recorder, triggers: serving.NewTriggerTimes(), gate: serving.NewGate(c)}
	var errs [3]error
	r.services, errs[0] = informer.For[*corev1.Service](informers)
	r.pods, errs[1] = informer.For[*corev1.Pod](informers)
	//lint:ignore SA1019 They are deprecated, but clients that do not know EndpointSlices read them.
	r.endpoints, errs[2] = informer.For[*corev1.Endpoints](informers)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("%s: %w", Name, err)
	}
	if o.Workers <= 0 {
		o.Workers = 5
	}
	finder, err := serving.NewFinder(r.services)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Name, err)
	}
	if err := pods.AddLabelIndex(r.pods); err != nil {
		return nil, fmt.Errorf("%s: %w", Name, err)
	}
	client.TrackInformer(c, corev1.Resource("endpoints"), r.endpoints)
	loop := reconcile.New(Name, r, reconcile.Options[reconcile.Request]{
		Workers: o.Workers, MaxRetries: maxRetries, Metrics: o.Metrics, Ready: r.gate.Ready,
	})
	for _, source := range []reconcile.Source[reconcile.Request]{
		source.Kind(r.services, handler.EnqueueObject[*corev1.Service]()),
		source.Kind(r.pods, finder.PodEvents(o.BatchPeriod)),
		source.Kind(r.endpoints, r.endpointsEvents()),
	} {
		if err := loop.Watch(source); err != nil {
			return nil, fmt.Errorf("%s: %w", Name, err)
		}
	}
	return loop, nil
}
