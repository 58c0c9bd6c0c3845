package endpointslicemirroring

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/client/events"
	"github.com/flyball-dev/flyball/controllers/internal/sliceset"
	"github.com/flyball-dev/flyball/informer"
	"github.com/flyball-dev/flyball/reconcile"
	"github.com/flyball-dev/flyball/reconcile/source"
	"github.com/flyball-dev/flyball/workqueue"
)

const (
	// Name is the controller's name, the one it has in kube-controller-manager.
	Name = "endpointslice-mirroring-controller"
	// Component is the source that its events name.
	Component = "endpoint-slice-mirroring-controller"
	// ManagedBy is the value of the label endpointslice.kubernetes.io/managed-by on the slices that the controller
	// manages.
	ManagedBy = "endpointslicemirroring-controller.k8s.io"
)

const (
	// maxRetries is how often a failed sync is retried. After that only a new event queues the Endpoints.
	maxRetries = 15
	// lastRetry is the longest wait before a retry.
	lastRetry = 100 * time.Second
	// maxPerSlice is the API's own limit.
	maxPerSlice = 1000
)

// Options configures the controller. The zero value works.
type Options struct {
	// Workers is how many Endpoints are synced at once. Zero means 5.
	Workers int
	// MaxEndpointsPerSubset is the limit of addresses that are mirrored of a subset of Endpoints. Zero means 1000,
	// which is the maximum.
	MaxEndpointsPerSubset int
	// BatchPeriod delays the syncs that changes of slices cause, so that one serves several. Zero means no delay.
	BatchPeriod time.Duration
	// Metrics receives the queue's metrics. Nil: none.
	Metrics workqueue.MetricsProvider
}

func (o *Options) complete() error {
	if o.Workers <= 0 {
		o.Workers = 5
	}
	o.MaxEndpointsPerSubset = cmp.Or(o.MaxEndpointsPerSubset, maxPerSlice)
	if o.MaxEndpointsPerSubset < 1 || o.MaxEndpointsPerSubset > maxPerSlice {
		return fmt.Errorf("%s: %d endpoints per subset: it must be between 1 and %d", Name, o.MaxEndpointsPerSubset,
			maxPerSlice)
	}
	return nil
}

// controller is the reconciler of Endpoints.
type controller struct {
	client       *client.Cluster
	endpoints    informer.Informer[*corev1.Endpoints]
	services     informer.Informer[*corev1.Service]
	slices       *sliceset.Set
	recorder     events.Recorder
	maxPerSubset int
}

// New returns a controller for the EndpointSlices of all Endpoints that belong to a Service without a selector. It adds
// an index to the informer of EndpointSlices. A key is a Service's name, which is also the name of its Endpoints. The
// recorder is the one for [Component].
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpointslicemirroring/endpointslicemirroring_controller.go
func New(c *client.Cluster, informers *informer.Factory, recorder events.Recorder, o Options,
) (*reconcile.Controller[reconcile.Request], error) {
	if err := o.complete(); err != nil {
		return nil, err
	}
	r := &controller{client: c, recorder: recorder, maxPerSubset: o.MaxEndpointsPerSubset}
	var errs [3]error
	r.endpoints, errs[0] = informer.For[*corev1.Endpoints](informers)
	r.services, errs[1] = informer.For[*corev1.Service](informers)
	r.slices, errs[2] = sliceset.New(c, informers, ManagedBy, "Endpoints")
	if err := errors.Join(errs[:]...); err != nil {
		return nil, fmt.Errorf("%s: %w", Name, err)
	}
	loop := reconcile.New(Name, r, reconcile.Options[reconcile.Request]{
		Workers: o.Workers, MaxRetries: maxRetries, RateLimiter: sliceset.Retries(lastRetry), Metrics: o.Metrics,
		Ready: r.slices.Ready,
	})
	for _, source := range []reconcile.Source[reconcile.Request]{
		source.Kind(r.endpoints, endpointsEvents()),
		source.Kind(r.services, serviceEvents()),
		source.Kind(r.slices.Informer(), r.slices.Events(o.BatchPeriod)),
	} {
		if err := loop.Watch(source); err != nil {
			return nil, fmt.Errorf("%s: %w", Name, err)
		}
	}
	return loop, nil
}
