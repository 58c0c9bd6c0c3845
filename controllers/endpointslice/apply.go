package endpointslice

import (
	"context"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/klog/v2"

	"github.com/flyball-dev/flyball/controllers/endpointslice/internal/hints"
	"github.com/flyball-dev/flyball/controllers/internal/pods"
	"github.com/flyball-dev/flyball/controllers/internal/serving"
	"github.com/flyball-dev/flyball/reconcile"
)

// Reconcile implements [reconcile.Reconciler]: observe, plan, apply.
//
// Source: k8s.io/kubernetes v1.37.2 pkg/controller/endpointslice/endpointslice_controller.go, syncService
func (c *controller) Reconcile(ctx context.Context, key reconcile.Request) (reconcile.Result, error) {
	svc, found := c.services.Get(key.Namespace, key.Name)
	if !found {
		c.triggers.Forget(key.NamespacedName)
		c.slices.Forget(key.NamespacedName)
		c.hinted.Set(key.NamespacedName, false)
		return reconcile.Result{}, nil
	}
	if !serving.HasSelector(svc) {
		return reconcile.Result{}, nil
	}
	o, err := c.observe(key.NamespacedName, svc)
	if err != nil {
		return reconcile.Result{}, err
	}
	wanted := plan(o)
	logSkipped(ctx, wanted.skipped)
	c.hinted.Set(key.NamespacedName, wanted.hinted)
	err = c.apply(ctx, key.NamespacedName, wanted)
	for _, n := range wanted.notices {
		c.recorder.Eventf(svc, n.kind, n.reason, "%s", n.message)
	}
	if err != nil && ctx.Err() == nil { // stopping is not a failure
		c.recorder.Eventf(svc, corev1.EventTypeWarning, "FailedToUpdateEndpointSlices",
			"Error updating Endpoint Slices for Service %s/%s: %v", svc.Namespace, svc.Name, err)
	}
	return reconcile.Result{}, err
}

// observe reads what plan needs. It advances the trigger time even if nothing is written afterwards.
func (c *controller) observe(key types.NamespacedName, svc *corev1.Service) (observed, error) {
	held, err := c.slices.Of(key)
	if err != nil {
		return observed{}, err
	}
	selected, err := pods.Selected(c.pods, key.Namespace, labels.Set(svc.Spec.Selector).AsSelectorPreValidated())
	if err != nil {
		return observed{}, err
	}
	o := observed{
		service:      svc,
		pods:         selected,
		slices:       held,
		nodes:        make(map[string]*corev1.Node),
		hinted:       c.hinted.Has(key),
		maxEndpoints: c.maxEndpoints,
	}
	for _, pod := range o.pods {
		if node, found := c.nodes.Get("", pod.Spec.NodeName); found {
			o.nodes[node.Name] = node
		}
	}
	if hints.WantsTopology(svc) {
		o.shares = hints.ZoneShares(c.nodes.All())
	}
	o.trigger = c.triggers.Advance(svc, o.pods)
	return o, nil
}

func logSkipped(ctx context.Context, skipped []skippedPod) {
	logger := klog.FromContext(ctx).V(4)
	if !logger.Enabled() {
		return
	}
	for _, s := range skipped {
		logger.Info("Pod does not have the port", "pod", klog.KObj(s.pod), "port", s.port)
	}
}

// apply carries out the plan. It returns all failures, including pods whose node is not known.
func (c *controller) apply(ctx context.Context, key types.NamespacedName, wanted changes) error {
	var errs []error
	for _, pod := range wanted.missingNodes {
		errs = append(errs,
			fmt.Errorf("skipping Pod %s for Service %s: Node %s Not Found", pod.Name, key, pod.Spec.NodeName))
	}
	for i := range wanted.batches {
		if err := c.slices.Write(ctx, key, wanted.batches[i].Batch); err != nil {
			errs = append(errs, err)
		}
	}
	return utilerrors.NewAggregate(errs)
}
