package endpointslicemirroring

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"github.com/flyball-dev/flyball/client"
	"github.com/flyball-dev/flyball/controllers/internal/serving"
	"github.com/flyball-dev/flyball/reconcile"
)

// Reconcile implements [reconcile.Reconciler]: observe, plan, apply.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpointslicemirroring/endpointslicemirroring_controller.go,
// syncEndpoints
func (c *controller) Reconcile(ctx context.Context, key reconcile.Request) (reconcile.Result, error) {
	o, err := c.observe(key.NamespacedName)
	if err != nil {
		return reconcile.Result{}, err
	}
	wanted := plan(o)
	if !mirrored(o.endpoints, o.service) {
		unwanted, err := c.confirm(ctx, key.NamespacedName, o)
		if err != nil {
			return reconcile.Result{}, err
		}
		if !unwanted {
			return reconcile.Result{RequeueAfter: serving.AskAgain}, nil
		}
	}
	c.report(o.endpoints, wanted)
	return reconcile.Result{}, c.slices.Write(ctx, key.NamespacedName, wanted.Batch)
}

// observe reads what plan needs.
func (c *controller) observe(key types.NamespacedName) (observed, error) {
	o := observed{maxPerSubset: c.maxPerSubset}
	o.endpoints, _ = c.endpoints.Get(key.Namespace, key.Name)
	o.service, _ = c.services.Get(key.Namespace, key.Name)
	var err error
	o.slices, err = c.slices.Of(key)
	return o, err
}

// confirm asks the server whether the slices of Endpoints that are not mirrored, as the caches show them, may be
// deleted. After a start, caches may show an earlier state than the one in which the slices were written: a replica of
// the API may lag. Without this question their clients would be without endpoints until the caches have caught up.
//
// Differs: kube-controller-manager deletes the slices as soon as its caches show no Endpoints or no Service.
func (c *controller) confirm(ctx context.Context, key types.NamespacedName, o observed) (unwanted bool, err error) {
	if len(o.slices) == 0 {
		c.slices.Forget(key)
		return true, nil
	}
	ep, svc := &corev1.Endpoints{}, &corev1.Service{}
	for _, obj := range []client.Object{ep, svc} {
		err := c.client.Get(ctx, key, obj, client.Live)
		if apierrors.IsNotFound(err) {
			return true, nil
		}
		if err != nil {
			return false, fmt.Errorf("confirm that endpoint slices are to be deleted: %w", err)
		}
	}
	return !mirrored(ep, svc), nil
}

// report records an event for addresses that were left out.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpointslicemirroring/reconciler.go, reconcile
func (c *controller) report(ep *corev1.Endpoints, wanted changes) {
	if wanted.invalid > 0 {
		c.recorder.Eventf(ep, corev1.EventTypeWarning, "InvalidIPAddress",
			"Skipped %d invalid IP addresses when mirroring to EndpointSlices", wanted.invalid)
	}
	if wanted.skipped > wanted.invalid {
		c.recorder.Eventf(ep, corev1.EventTypeWarning, "TooManyAddressesToMirror",
			"A max of %d addresses can be mirrored to EndpointSlices per Endpoints subset. %d addresses were skipped",
			c.maxPerSubset, wanted.skipped)
	}
}
