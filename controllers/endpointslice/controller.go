package endpointslice

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/events"
	"github.com/flyball-dev/flyball/controllers/internal/pods"
	"github.com/flyball-dev/flyball/controllers/internal/serving"
	"github.com/flyball-dev/flyball/controllers/internal/sliceset"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/handler"
	"github.com/flyball-dev/flyball/reconcile/source"
	"github.com/flyball-dev/flyball/workqueue"
)

const (
	// Name is the controller's name, the one it has in kube-controller-manager.
	Name = "endpointslice-controller"
	// Component is the source that its events name.
	Component = "endpoint-slice-controller"
	// ManagedBy is the value of the label endpointslice.kubernetes.io/managed-by on the slices that the controller
	// manages.
	ManagedBy = "endpointslice-controller.k8s.io"
)

const (
	// maxRetries is how often a failed sync is retried. After that only a new event queues the Service.
	maxRetries = 15
	// lastRetry is the longest wait before a retry.
	lastRetry = 1000 * time.Second
	// sliceDelay is the least delay from somebody else's change of a slice to the sync of its Service.
	sliceDelay = time.Second
)

// Options configures the controller. The zero value works.
type Options struct {
	// Workers is how many Services are synced at once. Zero means 5.
	Workers int
	// MaxEndpointsPerSlice is the limit of endpoints in a slice. Zero means 100. The maximum is 1000, which is what the
	// API accepts.
	MaxEndpointsPerSlice int
	// BatchPeriod delays the syncs that pod and slice changes cause, so that one serves several. Zero means no delay.
	BatchPeriod time.Duration
	// Metrics receives the queue's metrics. Nil: none.
	Metrics workqueue.MetricsProvider
}

// maxPerSlice is the API's own limit.
const maxPerSlice = 1000

func (o *Options) complete() error {
	if o.Workers <= 0 {
		o.Workers = 5
	}
	o.MaxEndpointsPerSlice = cmp.Or(o.MaxEndpointsPerSlice, 100)
	if o.MaxEndpointsPerSlice < 1 || o.MaxEndpointsPerSlice > maxPerSlice {
		return fmt.Errorf("%s: %d endpoints per slice: it must be between 1 and %d", Name, o.MaxEndpointsPerSlice,
			maxPerSlice)
	}
	return nil
}

// controller is the reconciler of Services.
type controller struct {
	services informer.Informer[*corev1.Service]
	pods     informer.Informer[*corev1.Pod]
	nodes    informer.Informer[*corev1.Node]
	slices   *sliceset.Set
	recorder events.Recorder
	finder   *serving.Finder
	triggers *serving.TriggerTimes
	// hinted are the Services with hints by the zones' shares of CPUs, which change with the nodes.
	hinted       serving.Services
	maxEndpoints int
	// sliceDelay is the delay of syncs that slices and nodes cause.
	sliceDelay time.Duration
}

// New returns a controller for the EndpointSlices of all Services with a selector. It adds indexes to the informers of
// Services, Pods and EndpointSlices. A key is a Service's name. The recorder is the one for [Component].
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpointslice/endpointslice_controller.go
func New(c *client.Cluster, informers *informer.Factory, recorder events.Recorder, o Options,
) (*reconcile.Controller[reconcile.Request], error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	r := &controller{
		recorder:     recorder,
		triggers:     serving.NewTriggerTimes(),
		maxEndpoints: o.MaxEndpointsPerSlice,
		sliceDelay:   max(sliceDelay, o.BatchPeriod),
	}
	var errs [4]error
	r.services, errs[0] = informer.For[*corev1.Service](informers)
	r.pods, errs[1] = informer.For[*corev1.Pod](informers)
	r.nodes, errs[2] = informer.For[*corev1.Node](informers)
	r.slices, errs[3] = sliceset.New(c, informers, ManagedBy, "Service")
	err := errors.Join(errs[:]...)
	if err == nil {
		r.finder, err = serving.NewFinder(r.services)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", Name, err)
	}
	if err := pods.AddLabelIndex(r.pods); err != nil {
		return nil, fmt.Errorf("%s: %w", Name, err)
	}
	loop := reconcile.New(Name, r, reconcile.Options[reconcile.Request]{
		Workers: o.Workers, MaxRetries: maxRetries, RateLimiter: sliceset.Retries(lastRetry), Metrics: o.Metrics,
		Ready: r.slices.Ready,
	})
	for _, source := range []reconcile.Source[reconcile.Request]{
		source.Kind(r.services, handler.EnqueueObject[*corev1.Service]()),
		source.Kind(r.pods, r.finder.PodEvents(o.BatchPeriod)),
		source.Kind(r.nodes, r.nodeEvents()),
		source.Kind(r.slices.Informer(), r.slices.Events(r.sliceDelay)),
	} {
		if err := loop.Watch(source); err != nil {
			return nil, fmt.Errorf("%s: %w", Name, err)
		}
	}
	return loop, nil
}
